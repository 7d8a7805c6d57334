// SPDX-License-Identifier: BSL-1.0
// Coroutines get values that a cache has: with a cache, and with the map, the list in the order of
// use and the mutex that a cache by hand consists of. And the heap bytes of an entry.
#include "support/caches.hpp"
#include "support/enroll.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {
namespace {

constexpr std::int64_t hits = 1'000'000; // by each thread

template <class Cache>
bool hit_on_one(meter& m)
{
    return hit<Cache>(m, hits, 1);
}
template <class Cache>
bool hit_on_two(meter& m)
{
    return hit<Cache>(m, hits, 2);
}

// With the tables of a full cache, and without what an empty one has.
template <class Cache>
double bytes_of_entry()
{
    boost::asio::io_context io;
    Cache cache(io, cached_keys);
    const std::size_t before = heap::bytes_in_use();
    for (std::size_t i = 0; i != 2 * cached_keys; ++i)
        cache.put(key_of(i));
    return static_cast<double>(heap::bytes_in_use() - before) / cached_keys;
}

template <class Cache>
void enroll_as(const std::string& competitor)
{
    enroll("cache_hit/" + competitor, hit_on_one<Cache>);
    enroll_bytes("bytes_cache_entry/" + competitor, bytes_of_entry<Cache>);
}

[[maybe_unused]] const bool enrolled = [] {
    using ours = turnstile_cache<turnstile::cache<cache_key, std::uint64_t>>;
    enroll_as<ours>("ours");
    enroll_as<turnstile_cache<turnstile::local::cache<cache_key, std::uint64_t>>>("local");
    enroll_as<locked_lru>("by_hand");
    enroll("cache_hit_2_threads/ours", hit_on_two<ours>, 2);
    enroll("cache_hit_2_threads/by_hand", hit_on_two<locked_lru>, 2);
    return true;
}();

} // namespace
} // namespace bench
