// SPDX-License-Identifier: BSL-1.0
// The first of two waits, and both of two operations: with select and all, with || and && of
// awaitables, with a parallel_group, and with channels.
#include "support/enroll.hpp"
#include "support/races.hpp"

namespace bench {
namespace {

constexpr std::int64_t times = 20'000;

template <class First>
void enroll_first(const std::string& competitor)
{
    enroll("select_ready/" + competitor,
           [](meter& m) { return take_first<First>(m, times, readiness::at_once); });
    enroll("select_wait/" + competitor,
           [](meter& m) { return take_first<First>(m, times, readiness::later); });
}

template <class Both>
void enroll_both(const std::string& competitor)
{
    enroll("all/" + competitor, [](meter& m) { return run_both<Both>(m, times); });
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_first<selected>("ours");
    enroll_first<either_awaitable>("operators");
    enroll_first<first_of_group>("parallel_group");
    enroll_first<either_channel>("channel");
    enroll_both<all_of_both>("ours");
    enroll_both<both_awaitables>("operators");
    enroll_both<both_of_group>("parallel_group");
    return true;
}();

} // namespace
} // namespace bench
