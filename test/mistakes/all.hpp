// SPDX-License-Identifier: BSL-1.0
// What every mistake is compiled with; compiled once for all of them.
#pragma once

#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<std::string> fetch();
