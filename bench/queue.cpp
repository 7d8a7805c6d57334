// SPDX-License-Identifier: BSL-1.0
// Items through a queue of capacity 64: with one producer and one consumer, and with four of each.
#include "support/enroll.hpp"
#include "support/queues.hpp"

namespace bench {
namespace {

template <class Queue>
void enroll_as(const std::string& name, const traffic& size)
{
    enroll(
        name, [=](meter& m) { return transfer<Queue>(m, size); }, size.threads);
}

template <class Queue>
void enroll_all(const std::string& competitor, int most_threads)
{
    for (int threads = 1; threads <= most_threads; ++threads) {
        const std::string end = (threads == 1 ? "/" : "_2_threads/") + competitor;
        enroll_as<Queue>("spsc" + end, {.sides = 1, .items = 100'000, .threads = threads});
        enroll_as<Queue>("mpmc" + end, {.sides = 4, .items = 25'000, .threads = threads});
        if constexpr (requires(Queue & q) { q.pop_some(1); })
            enroll_as<Queue>("spsc_batch" + end,
                             {.sides = 1, .items = 100'000, .threads = threads, .batch = 64});
    }
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_all<turnstile_queue<turnstile::queue<std::int64_t>>>("ours", 2);
    enroll_all<turnstile_queue<turnstile::local::queue<std::int64_t>>>("local", 1);
    enroll_all<channel_queue<item_channel>>("channel", 1);
    enroll_all<channel_queue<concurrent_item_channel>>("concurrent_channel", 2);
    return true;
}();

} // namespace
} // namespace bench
