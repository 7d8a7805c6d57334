// SPDX-License-Identifier: BSL-1.0
// The supported versions of Boost, the macros that depend on the version, and the names that
// Turnstile uses from Boost. No other header tests a version.
#pragma once

#include <boost/asio/version.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <boost/version.hpp>

#if BOOST_VERSION < 108100
#    error "Turnstile requires Boost 1.81 or newer"
#endif

/// 1 if Boost has the associated immediate executor (1.82 and newer), otherwise 0.
#if BOOST_VERSION >= 108200
#    define TURNSTILE_HAS_IMMEDIATE_EXECUTOR 1
#else
#    define TURNSTILE_HAS_IMMEDIATE_EXECUTOR 0
#endif

// Frames of waits are kept for reuse, unless Asio's recycling is disabled, or the address sanitizer
// is to detect uses of a destroyed frame.
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
