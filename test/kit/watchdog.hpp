// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace kit {

// Ends the process when a test case hangs, and says which: a case that has not ended after 120 s
// (300 s with a sanitizer, or TURNSTILE_WATCHDOG seconds; 0 is never) prints a line that begins
// with FAILED, and the process exits with 124. By a timer signal, not by a thread: some tests
// need a process with only one. Does nothing where there are no such signals.
void watch_cases();

} // namespace kit
