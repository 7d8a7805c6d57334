// SPDX-License-Identifier: BSL-1.0
// The attributes of functions and classes of the library. The header includes nothing, so that the
// smallest headers can use it.
//
// TURNSTILE_EXPORT marks a function or a class whose definition is in the compiled library. Two
// macros from outside decide its expansion on Windows: the CMake target and the .pc file of a
// shared build define TURNSTILE_SHARED; the build of the library defines TURNSTILE_BUILDING.
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
// In a static build, too: a type that shared libraries of the program exchange (an exception, the
// error category, a service) must be the same type in all of them.
#    define TURNSTILE_EXPORT __attribute__((visibility("default")))
#endif

// Three macros overrule the compiler's choice of the functions that it inlines, where the counts of
// the instruction guard are lower with them:
// - TURNSTILE_HOT: a function on the fast path of a lock, a permit or a call, or the first attempt
//   of a wait. It is always inlined in a build with NDEBUG, because otherwise GCC decides by the
//   amount of other code in the translation unit; a debug build compiles faster without.
// - TURNSTILE_NOINLINE: a function that would only enlarge its callers.
// - TURNSTILE_COLD: such a function that is also called seldom. It is optimised for size.
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
