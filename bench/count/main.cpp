// SPDX-License-Identifier: BSL-1.0
// Runs n operations of one workload on one thread, so that valgrind can count their instructions:
// count <workload> <n>. See bench/instructions.
#include "workload.hpp"

#include <boost/version.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string_view>

namespace bench {
namespace {

const workload* find(std::string_view name)
{
    for (const auto workloads : {workloads_of_turnstile(), workloads_of_work(),
                                 workloads_of_others(), workloads_of_work_others()}) {
        const auto found = std::ranges::find(workloads, name, &workload::name);
        if (found != workloads.end())
            return &*found;
    }
    return nullptr;
}

void list(std::span<const workload> workloads)
{
    for (const workload& w : workloads)
        std::cout << w.name << '\n';
}

// Lists the workloads of Turnstile ("turnstile"), of its competitors ("others"), or all ("").
int list(std::string_view whose)
{
    if (whose != "others") {
        list(workloads_of_turnstile());
        list(workloads_of_work());
    }
    if (whose != "turnstile") {
        list(workloads_of_others());
        list(workloads_of_work_others());
    }
    return EXIT_SUCCESS;
}

// Prints the version of Boost, whose code is counted as well.
int print_boost()
{
    std::cout << BOOST_VERSION / 100000 << '.' << BOOST_VERSION / 100 % 1000 << '\n';
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
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (first == "--list" && argc <= 3)
        return bench::list(argc == 3 ? argv[2] : "");
    if (first == "--boost" && argc == 2)
        return bench::print_boost();
    if (argc == 3)
        return bench::run(argv[1], std::strtoll(argv[2], nullptr, 10));
    std::cerr << "usage: count --list [turnstile|others], count --boost,\n"
                 "or count <workload> <n>, n a multiple of 100\n";
    return EXIT_FAILURE;
}
