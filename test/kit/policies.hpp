// SPDX-License-Identifier: BSL-1.0
// The threading policies, for tests that hold for both forms of a primitive.
#pragma once

#include <turnstile/core/threading.hpp>

#include <tuple>

namespace kit {

using policies = std::tuple<turnstile::thread_safe, turnstile::strand_confined>;

} // namespace kit
