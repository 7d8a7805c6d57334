// SPDX-License-Identifier: BSL-1.0
// Rate limiters that follow the manual clock.
#pragma once

#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/rate_limiter.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>

namespace limiters {

namespace asio = boost::asio;
using kit::completion;
using turnstile::bandwidth;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;
using turnstile::per_second;
using turnstile::rate_limiter_event;
using namespace std::chrono_literals;

template <class Threading>
using limiter_of =
    turnstile::basic_rate_limiter<asio::any_io_executor, Threading, kit::manual_clock>;

inline const auto nothing = [] {};

inline void pass(asio::io_context& io, nanoseconds time) { kit::manual_clock::advance(io, time); }

} // namespace limiters
