// SPDX-License-Identifier: BSL-1.0
// Runs one workload so many times on one thread, for valgrind to count the instructions:
// count <workload> <n>. See bench/instructions.
#include "workload.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace bench {
namespace {

const workload* find(std::string_view name)
{
    for (const auto workloads : {workloads_of_turnstile(), workloads_of_others()}) {
        const auto found = std::ranges::find(workloads, name, &workload::name);
        if (found != workloads.end())
            return &*found;
    }
    return nullptr;
}

int list()
{
    for (const auto workloads : {workloads_of_turnstile(), workloads_of_others()}) {
        for (const workload& w : workloads)
            std::cout << w.name << '\n';
    }
    return EXIT_SUCCESS;
}

int run(std::string_view name, std::int64_t n)
{
    const workload* const found = find(name);
    if (!found)
        std::cerr << "there is no workload " << name << "; see --list\n";
    else if (!found->run(n))
        std::cerr << name << ": wrong result\n";
    else
        return EXIT_SUCCESS;
    return EXIT_FAILURE;
}

} // namespace
} // namespace bench

int main(int argc, char** argv)
{
    if (argc == 2 && argv[1] == std::string_view("--list"))
        return bench::list();
    if (argc == 3)
        return bench::run(argv[1], std::strtoll(argv[2], nullptr, 10));
    std::cerr << "usage: count --list, or count <workload> <n>, n a multiple of 100\n";
    return EXIT_FAILURE;
}
