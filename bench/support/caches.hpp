// SPDX-License-Identifier: BSL-1.0
// Caches under one interface, and their workload: coroutines get values that the cache has. The
// keys are Zipf distributed.
#pragma once

#include "threads.hpp"

#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/cache.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench {

using cache_key = std::uint64_t;
using cached_value = std::shared_ptr<const std::uint64_t>;

constexpr std::size_t cached_keys = 10'000;

inline cache_key key_of(std::size_t i) { return i * 0x9e3779b97f4a7c15U; }

// The keys of the calls: key number i has a part of them in proportion to 1 / (i + 1).
inline const std::vector<cache_key>& zipf_keys()
{
    static const std::vector<cache_key> all = [] {
        std::vector<double> sums(cached_keys);
        double sum = 0;
        for (std::size_t i = 0; i != cached_keys; ++i)
            sums[i] = sum += 1.0 / static_cast<double>(i + 1);
        turnstile::detail::random_source random(1);
        std::vector<cache_key> drawn(1 << 18);
        for (cache_key& k : drawn) {
            const double u = static_cast<double>(random.next() >> 11) * 0x1p-53 * sum;
            const auto at = std::lower_bound(sums.begin(), sums.end(), u) - sums.begin();
            k = key_of(static_cast<std::size_t>(at));
        }
        return drawn;
    }();
    return all;
}

template <class Cache>
class turnstile_cache {
public:
    turnstile_cache(boost::asio::io_context& io, std::size_t max_entries)
        : cache_(io, {.max_entries = max_entries})
    {
    }
    void put(cache_key k) { cache_.put(k, k); }
    auto get(cache_key k)
    {
        return cache_.async_get(
            k, [](cache_key key) -> boost::asio::awaitable<std::uint64_t> { co_return key; });
    }

private:
    Cache cache_;
};

class locked_lru {
public:
    locked_lru(boost::asio::io_context&, std::size_t max_entries) : max_entries_(max_entries) {}
    void put(cache_key k)
    {
        const std::scoped_lock lock(mutex_);
        if (map_.size() == max_entries_) {
            map_.erase(order_.back().first);
            order_.pop_back();
        }
        order_.push_front({k, std::make_shared<const std::uint64_t>(k)});
        map_.emplace(k, order_.begin());
    }
    boost::asio::awaitable<cached_value> get(cache_key k)
    {
        const std::scoped_lock lock(mutex_);
        const auto it = map_.find(k);
        if (it == map_.end())
            co_return nullptr;
        order_.splice(order_.begin(), order_, it->second);
        co_return it->second->second;
    }

private:
    using order = std::list<std::pair<cache_key, cached_value>>;
    const std::size_t max_entries_;
    std::mutex mutex_;
    order order_;
    std::unordered_map<cache_key, order::iterator> map_;
};

// Each thread gets `hits` values.
template <class Cache, class Meter>
bool hit(Meter& m, std::int64_t hits, int threads)
{
    boost::asio::io_context io;
    Cache cache(io, 2 * cached_keys);
    const std::vector<cache_key>& drawn = zipf_keys();
    for (std::size_t i = 0; i != cached_keys; ++i)
        cache.put(key_of(i));
    std::atomic<std::uint64_t> sum = 0;
    const auto run = [&](std::size_t at) -> boost::asio::awaitable<void> {
        std::uint64_t s = 0;
        for (std::int64_t i = 0; i != hits; ++i) {
            const cached_value v = co_await cache.get(drawn[at++ % drawn.size()]);
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

} // namespace bench
