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

namespace boost::asio {
}

namespace turnstile::inline v0_1 {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;

} // namespace turnstile::inline v0_1
