// SPDX-License-Identifier: BSL-1.0
// Seeds of randomised tests, which are printed with every failure and replayed with TURNSTILE_SEED.
#pragma once

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kit {

// Calls f(seed) for `count` seeds, or only for the seed in TURNSTILE_SEED. With a sanitizer, which
// makes the program slow, a quarter of the seeds are used.
template <class F>
void for_each_seed(std::uint64_t count, F&& f)
{
    std::uint64_t first = 1;
#if TURNSTILE_SANITIZED
    count = (count + 3) / 4;
#endif
    if (const char* chosen = std::getenv("TURNSTILE_SEED")) {
        first = std::stoull(chosen);
        count = 1;
    }
    for (std::uint64_t seed = first; seed != first + count; ++seed) {
        BOOST_TEST_CONTEXT("replay with TURNSTILE_SEED=" << seed) { f(seed); }
    }
}

} // namespace kit
