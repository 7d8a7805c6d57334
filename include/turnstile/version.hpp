// SPDX-License-Identifier: BSL-1.0
// The version of Turnstile. CMake checks that it agrees with the project's.
#pragma once

#define TURNSTILE_VERSION_MAJOR 0
#define TURNSTILE_VERSION_MINOR 1
#define TURNSTILE_VERSION_PATCH 0
#define TURNSTILE_VERSION_STRING "0.1.0"
