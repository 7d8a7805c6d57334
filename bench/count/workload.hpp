// SPDX-License-Identifier: BSL-1.0
// The list of the workloads. Those of Turnstile and those of its competitors are in separate
// translation units, because the inlining of one would depend on the amount of the other.
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
// The same for the work layer.
std::span<const workload> workloads_of_work();
std::span<const workload> workloads_of_work_others();

} // namespace bench
