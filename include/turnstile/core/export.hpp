// SPDX-License-Identifier: BSL-1.0
// Attributes. TURNSTILE_EXPORT marks what lives in the compiled library.
//
// TURNSTILE_SHARED comes with the CMake target and the .pc file of a shared build;
// TURNSTILE_BUILDING is defined only while the library itself is compiled.
#pragma once

#if defined(_WIN32) || defined(__CYGWIN__)
#    if !defined(TURNSTILE_SHARED)
#        define TURNSTILE_EXPORT
#    elif defined(TURNSTILE_BUILDING)
#        define TURNSTILE_EXPORT __declspec(dllexport)
#    else
#        define TURNSTILE_EXPORT __declspec(dllimport)
#    endif
#else
// Also in a static build: types that cross shared libraries (exceptions, error
// categories, services) keep one identity in the whole program.
#    define TURNSTILE_EXPORT __attribute__((visibility("default")))
#endif

// TURNSTILE_COLD marks what is seldom called, and would only bloat its callers;
// TURNSTILE_HOT what is smaller than a call of it, or part of every wait: how much else is in a
// translation unit would decide whether GCC inlines it. Builds with asserts are for debugging, and
// are compiled an eighth quicker without.
#if defined(__GNUC__)
#    define TURNSTILE_COLD [[gnu::noinline, gnu::cold]]
#    define TURNSTILE_NOINLINE [[gnu::noinline]]
#    if defined(NDEBUG)
#        define TURNSTILE_HOT [[gnu::always_inline]] inline
#    else
#        define TURNSTILE_HOT inline
#    endif
#else
#    define TURNSTILE_COLD
#    define TURNSTILE_NOINLINE
#    define TURNSTILE_HOT inline
#endif
