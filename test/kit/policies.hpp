// SPDX-License-Identifier: BSL-1.0
// Both twins of each primitive, for tests that hold for either.
#pragma once

#include <turnstile/core/threading.hpp>

#include <tuple>

namespace kit {

using policies = std::tuple<turnstile::thread_safe, turnstile::strand_confined>;

} // namespace kit
