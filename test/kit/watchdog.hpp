// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace kit {

// Ends the process when a test case hangs, and names the case: if it has not ended after 120 s (300
// s with a sanitizer, or TURNSTILE_WATCHDOG seconds, where 0 means never), the process prints a
// line that begins with FAILED and exits with status 124. Uses a timer signal and no thread,
// because some tests need a process with one thread. Does nothing on systems without such signals.
void watch_cases();

} // namespace kit
