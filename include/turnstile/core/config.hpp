// SPDX-License-Identifier: BSL-1.0
// Every test for a version of Boost, or for what else is there, in one place.
#pragma once

#include <boost/asio/version.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <boost/version.hpp>

#if BOOST_VERSION < 108100
#    error "Turnstile needs Boost 1.81 or newer"
#endif

// Boost 1.82 brought the associated immediate executor.
#if BOOST_VERSION >= 108200
#    define TURNSTILE_HAS_IMMEDIATE_EXECUTOR 1
#else
#    define TURNSTILE_HAS_IMMEDIATE_EXECUTOR 0
#endif

// Frames of coroutines are kept for reuse, unless Asio was told not to; nor with the address
// sanitizer, which is to see as much of their end as Asio's own recycler lets it.
#if defined(BOOST_ASIO_DISABLE_AWAITABLE_FRAME_RECYCLING) || defined(__SANITIZE_ADDRESS__)
#    define TURNSTILE_KEEPS_FRAMES 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define TURNSTILE_KEEPS_FRAMES 0
#    endif
#endif
#if !defined(TURNSTILE_KEEPS_FRAMES)
#    define TURNSTILE_KEEPS_FRAMES 1
#endif

namespace boost::asio {
}

namespace turnstile::inline v0_1 {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;

} // namespace turnstile::inline v0_1
