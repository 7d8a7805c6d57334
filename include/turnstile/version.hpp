// SPDX-License-Identifier: BSL-1.0
// The version of Turnstile, for the preprocessor. CMake checks that it agrees with the project's.
//
// Everything is declared in the inline namespace `turnstile::v0_1`, which changes with each version
// that breaks the ABI: code compiled against one version does not link with another.
#pragma once

#define TURNSTILE_VERSION_MAJOR 0
#define TURNSTILE_VERSION_MINOR 1
#define TURNSTILE_VERSION_PATCH 0

/// The version as one number that can be compared: 10000 * major + 100 * minor + patch.
#define TURNSTILE_VERSION \
    (TURNSTILE_VERSION_MAJOR * 10000 + TURNSTILE_VERSION_MINOR * 100 + TURNSTILE_VERSION_PATCH)

#define TURNSTILE_VERSION_STRING "0.1.0"
