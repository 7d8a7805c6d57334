// SPDX-License-Identifier: BSL-1.0
// The sweep of tests with a failing heap.
#pragma once

#include "alloc/heap.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace heap {

constexpr failure both_ways[] = {failure::once, failure::for_ever};

// Tries k = 0, 1, 2, ... until attempt(k, how) gets by without meeting its failure.
template <class Attempt>
void sweep(Attempt attempt)
{
    for (failure how : both_ways) {
        for (std::size_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 2'000U);
            bool met = false;
            BOOST_TEST_CONTEXT("allocation " << k << " fails "
                                             << (how == failure::once ? "once" : "for ever"))
            {
                met = attempt(k, how);
            }
            if (!met)
                break;
        }
    }
}

} // namespace heap
