// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>

#if TURNSTILE_COUNTS_THREADS
#    include <sys/single_threaded.h>
#endif

namespace turnstile::inline v0_1::detail {

// Whether this is the only thread of the process. Nobody else can make it untrue meanwhile, and
// the second thread sees what was written before it was made. The C library tells; where it does
// not, the answer is no. It may stay no when the other threads have ended.
inline bool is_lone_thread() noexcept
{
#if TURNSTILE_COUNTS_THREADS
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

} // namespace turnstile::inline v0_1::detail
