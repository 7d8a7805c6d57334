// SPDX-License-Identifier: BSL-1.0
// Lower bounds: the parts of a figure that no library on Asio can avoid.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

#include <boost/asio/post.hpp>

#include <mutex>

namespace bench {
namespace {

constexpr std::int64_t times = 50'000;

bool lock_std_mutex(meter& m)
{
    std::mutex mutex;
    std::int64_t locked = 0;
    m.begin();
    for (std::int64_t i = 0; i != times; ++i) {
        const std::scoped_lock lock(mutex);
        benchmark::DoNotOptimize(++locked);
    }
    m.end(times);
    return locked == times;
}

[[maybe_unused]] const bool enrolled = [] {
    enroll("floor/nested_call", [](meter& m) { return loop(m, times, &empty_coroutine); });
    enroll("floor/post",
           [](meter& m) { return loop(m, times, [] { return asio::post(asio::use_awaitable); }); });
    enroll("floor/std_mutex", &lock_std_mutex);
    return true;
}();

} // namespace
} // namespace bench
