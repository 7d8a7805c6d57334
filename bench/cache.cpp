// SPDX-License-Identifier: BSL-1.0
// Coroutines get values that a cache has: with a cache, and with the map, the list in the order of
// use and the mutex that a cache by hand consists of. The keys are Zipf distributed.
#include "support/enroll.hpp"
#include "support/threads.hpp"

#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench {
namespace {

using key_type = std::uint64_t;
using value_ptr = std::shared_ptr<const std::uint64_t>;

constexpr std::int64_t hits = 1'000'000; // by each thread
constexpr std::size_t keys = 10'000;

// The keys of the calls: key number i has a part of them in proportion to 1 / (i + 1).
const std::vector<key_type>& zipf_keys()
{
    static const std::vector<key_type> all = [] {
        std::vector<double> sums(keys);
        double sum = 0;
        for (std::size_t i = 0; i != keys; ++i)
            sums[i] = sum += 1.0 / static_cast<double>(i + 1);
        turnstile::detail::random_source random(1);
        std::vector<key_type> drawn(1 << 18);
        for (key_type& k : drawn) {
            const double u = static_cast<double>(random.next() >> 11) * 0x1p-53 * sum;
            const auto at = std::lower_bound(sums.begin(), sums.end(), u) - sums.begin();
            k = static_cast<key_type>(at) * 0x9e3779b97f4a7c15U;
        }
        return drawn;
    }();
    return all;
}

template <class Cache>
class turnstile_cache {
public:
    explicit turnstile_cache(boost::asio::io_context& io) : cache_(io, {.max_entries = 2 * keys}) {}
    void put(key_type k) { cache_.put(k, k); }
    auto get(key_type k)
    {
        return cache_.async_get(
            k, [](key_type key) -> boost::asio::awaitable<std::uint64_t> { co_return key; });
    }

private:
    Cache cache_;
};

class locked_lru {
public:
    explicit locked_lru(boost::asio::io_context&) {}
    void put(key_type k)
    {
        order_.push_front({k, std::make_shared<const std::uint64_t>(k)});
        map_.emplace(k, order_.begin());
    }
    boost::asio::awaitable<value_ptr> get(key_type k)
    {
        const std::scoped_lock lock(mutex_);
        const auto it = map_.find(k);
        if (it == map_.end())
            co_return nullptr;
        order_.splice(order_.begin(), order_, it->second);
        co_return it->second->second;
    }

private:
    using order = std::list<std::pair<key_type, value_ptr>>;
    std::mutex mutex_;
    order order_;
    std::unordered_map<key_type, order::iterator> map_;
};

template <class Cache>
bool hit(meter& m, int threads)
{
    boost::asio::io_context io;
    Cache cache(io);
    const std::vector<key_type>& drawn = zipf_keys();
    for (std::size_t i = 0; i != keys; ++i)
        cache.put(i * 0x9e3779b97f4a7c15U);
    std::atomic<std::uint64_t> sum = 0;
    const auto run = [&](std::size_t at) -> boost::asio::awaitable<void> {
        std::uint64_t s = 0;
        for (std::int64_t i = 0; i != hits; ++i) {
            const value_ptr v = co_await cache.get(drawn[at++ % drawn.size()]);
            s += *v;
        }
        sum += s;
    };
    for (int i = 0; i != threads; ++i)
        boost::asio::co_spawn(io, run(static_cast<std::size_t>(i) * 777), boost::asio::detached);
    m.begin();
    run_on_threads(io, threads);
    m.end(hits * threads);
    return sum != 0;
}

template <class Cache>
bool hit_on_one(meter& m)
{
    return hit<Cache>(m, 1);
}
template <class Cache>
bool hit_on_two(meter& m)
{
    return hit<Cache>(m, 2);
}

[[maybe_unused]] const bool enrolled = [] {
    using ours = turnstile_cache<turnstile::cache<key_type, std::uint64_t>>;
    enroll("cache_hit/ours", hit_on_one<ours>);
    enroll("cache_hit/local",
           hit_on_one<turnstile_cache<turnstile::local::cache<key_type, std::uint64_t>>>);
    enroll("cache_hit/by_hand", hit_on_one<locked_lru>);
    enroll("cache_hit_2_threads/ours", hit_on_two<ours>, 2);
    enroll("cache_hit_2_threads/by_hand", hit_on_two<locked_lru>, 2);
    return true;
}();

} // namespace
} // namespace bench
