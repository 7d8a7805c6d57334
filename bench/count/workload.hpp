// SPDX-License-Identifier: BSL-1.0
// What can be counted. Turnstile and those beside it are in translation units of their own: what
// the compiler inlines of one must not depend on how much there is of the other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace bench {

struct workload {
    std::string_view name;
    bool (*run)(std::int64_t n);
};

std::span<const workload> workloads_of_turnstile();
std::span<const workload> workloads_of_others();

} // namespace bench
