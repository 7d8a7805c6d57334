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

namespace boost::asio {
}

namespace turnstile::inline v0_1 {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;

} // namespace turnstile::inline v0_1
