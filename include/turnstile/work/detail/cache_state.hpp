// SPDX-License-Identifier: BSL-1.0
// The state of a cache: its shards, and the flights of its loads (flight_state). Hits touch one
// shard; misses also take the lock of the flights.
//
// A loaded value is stored when its flight ends, under both locks, unless the flight was superseded
// or a value was stored meanwhile. put and invalidate supersede the flight of their key first, and
// change the shard then. So a load that began before them never replaces what they have stored.
//
// The functions of the user (hash, comparison, weigher, lifetime_of, is_negative) are called
// without a lock.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/cache_options.hpp>
#include <turnstile/work/detail/cache_shard.hpp>
#include <turnstile/work/detail/flight.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Key, class Value, class Hash, class Equal, class Threading, clock_policy Clock>
class cache_state final : public flight_state<Threading> {
    using base = flight_state<Threading>;

public:
    using key_type = Key;
    using options_type = cache_options<Key, Value>;
    using shard = cache_shard<Key, Value, Threading>;
    using entry = typename shard::entry;
    using entry_ptr = typename shard::entry_ptr;
    using found = typename shard::found;
    using removed_list = typename shard::removed_list;
    using listeners_type = typename shard::listeners_type;
    using pin_type = flight_pin<Threading>;
    using flight_type = load_flight<entry, Threading>;

    template <class Executor>
    cache_state(const Executor& executor, const options_type& options, const Hash& hash,
                const Equal& equal)
        : base(executor), options_(checked(options)), hash_(hash), equal_(equal),
          seed_(random_seed()), uses_time_(needs_clock(options))
    {
        const std::size_t n = shards_of(options);
        const std::uint64_t total = capacity(options);
        const cache_times times{uses_time_, options.refresh_ahead, options.stale_while_revalidate,
                                options.stale_if_error};
        for (std::size_t i = 0; i != n; ++i) {
            const std::uint64_t part = total / n + (i < total % n ? 1 : 0);
            shards_.push_back(
                std::make_unique<shard>(options.policy, part, seed_ + i, times, listeners_));
        }
    }

    const options_type& options() const noexcept { return options_; }
    listeners_type& listeners() noexcept { return listeners_; }
    std::size_t shard_count() const noexcept { return shards_.size(); }
    const Equal& equal() const noexcept { return equal_; }

    // With a seed, so that the places of keys in the table cannot be foreseen.
    std::size_t hash(const Key& key) const
    {
        const auto [high, low] =
            full_product(std::uint64_t(hash_(key)) ^ seed_, 0x9e3779b97f4a7c15U);
        return static_cast<std::size_t>((high ^ low) * 0xd6e8feb86659fd93U);
    }

    nanoseconds now() const noexcept
    {
        return uses_time_ ? saturating_nanoseconds(Clock::now().time_since_epoch())
                          : nanoseconds::zero();
    }

    // The entry of a key, which is used, in a cache whose entries do not expire. Null also if only
    // look_up() can tell.
    TURNSTILE_HOT entry_ptr hit(const Key& key, std::size_t h)
    {
        if (uses_time_)
            return nullptr;
        shard& s = shard_of(h);
        entry_ptr e = s.hit(h);
        if (e && !is_of(*e, key, &s, false)) [[unlikely]]
            e.reset();
        return e;
    }
    // The entry of a key that may be handed out, or replace a failure. `uses`: the entry is used.
    found look_up(const Key& key, std::size_t h, bool uses)
    {
        removed_list removed;
        const nanoseconds time = now();
        shard& s = shard_of(h);
        for (std::uint64_t below = shard::any_number;;) {
            found f = s.find(h, below, time, uses, removed);
            const bool is_hit = uses && f.match != cache_match::stale;
            if (!f.e || is_of(*f.e, key, is_hit ? &s : nullptr, f.is_expired)) {
                if (!f.e || f.is_expired) [[unlikely]]
                    dispatch(); // of entries that have expired
                return f;
            }
            below = f.e->number;
        }
    }
    void count_miss(std::size_t h, bool loads) noexcept { shard_of(h).count_miss(h, loads); }

    // Stores an entry that has a value and is not shared yet.
    void put(const entry_ptr& e)
    {
        complete(*e);
        supersede(e->key, e->hash());
        removed_list removed;
        shard& s = shard_of(e->hash());
        for (;;) {
            const auto [old, below] = match(e->key, e->hash());
            if (s.replace(e, old, below, now(), removed))
                break;
        }
        s.grow();
        dispatch();
    }
    bool invalidate(const Key& key)
    {
        const std::size_t h = hash(key);
        supersede(key, h);
        removed_list removed;
        const entry_ptr e = match(key, h).first;
        const bool had = e && shard_of(h).remove(e, removal_cause::invalidated, removed);
        dispatch();
        return had && e->value;
    }
    template <class Predicate>
    std::size_t invalidate_if(Predicate& predicate)
    {
        this->supersede_all();
        std::size_t n = 0;
        removed_list removed;
        for (auto& s : shards_) {
            for (const entry_ptr& e : s->entries()) {
                if (e->value && predicate(std::as_const(e->key), std::as_const(*e->value)))
                    n += s->remove(e, removal_cause::invalidated, removed) ? 1 : 0;
            }
        }
        dispatch();
        return n;
    }
    void clear() noexcept
    {
        this->supersede_all();
        remove_all(removal_cause::invalidated);
        dispatch();
    }
    std::size_t purge() noexcept
    {
        removed_list removed;
        std::size_t n = 0;
        for (auto& s : shards_)
            n += s->purge(now(), removed);
        dispatch();
        return n;
    }
    std::size_t size() noexcept
    {
        std::size_t n = 0;
        for (auto& s : shards_)
            n += s->size();
        return n;
    }
    cache_stats stats() noexcept
    {
        const single_flight_stats f = base::stats();
        cache_stats s;
        s.loading = f.loading;
        s.waiting = f.waiting;
        s.loads = f.started;
        s.loaded = f.succeeded;
        s.failed = f.failed;
        s.cancelled = f.cancelled;
        for (auto& part : shards_)
            part->add_to(s);
        return s;
    }

    // The cache is being destroyed.
    void abandon() noexcept
    {
        listeners_.close();
        this->supersede_all();
        this->cancel_all();
        removed_list removed;
        for (auto& s : shards_)
            s->take_all(removed, nullptr);
    }

private:
    static std::uint64_t capacity(const options_type& o) noexcept
    {
        return o.weigher ? o.max_weight : o.max_entries;
    }
    static bool needs_clock(const options_type& o) noexcept
    {
        return o.ttl != nanoseconds::max() || o.idle_ttl != nanoseconds::max() || o.lifetime_of ||
               o.negative_ttl != nanoseconds::zero();
    }
    static std::size_t shards_of(const options_type& o) noexcept
    {
        constexpr std::uint64_t entries_of_shard = 512;
        constexpr std::uint64_t most = 16;
        if (Threading::is_confined)
            return 1;
        if (o.shards != 0)
            return o.shards;
        if (o.weigher) // the weight of an entry is unknown
            return 1;
        return static_cast<std::size_t>(
            std::bit_floor(std::clamp<std::uint64_t>(o.max_entries / entries_of_shard, 1, most)));
    }
    static const options_type& checked(const options_type& o)
    {
        const auto require = [](bool holds, const char* what) {
            if (!holds)
                throw_error(errc::invalid_argument, what);
        };
        const auto is_duration = [](nanoseconds d) { return d >= nanoseconds::zero(); };
        require(o.max_entries != 0, "cache: max_entries must not be 0");
        require(o.max_weight != 0, "cache: max_weight must not be 0");
        const bool has_weight = o.max_weight != std::numeric_limits<std::uint64_t>::max();
        require(has_weight == static_cast<bool>(o.weigher),
                "cache: max_weight and weigher must be set together");
        require(!has_weight || o.max_entries == options_type::unlimited,
                "cache: max_entries must be unlimited if max_weight is set");
        require(is_duration(o.ttl), "cache: ttl must not be negative");
        require(is_duration(o.idle_ttl), "cache: idle_ttl must not be negative");
        require(o.jitter >= 0 && o.jitter < 1, "cache: jitter must be in [0, 1)");
        require(is_duration(o.refresh_ahead), "cache: refresh_ahead must not be negative");
        require(is_duration(o.stale_while_revalidate),
                "cache: stale_while_revalidate must not be negative");
        require(is_duration(o.stale_if_error), "cache: stale_if_error must not be negative");
        require(is_duration(o.negative_ttl), "cache: negative_ttl must not be negative");
        require(o.load_timeout > nanoseconds::zero(), "cache: load_timeout must be positive");
        require(o.max_loads != 0, "cache: max_loads must not be 0");
        require(o.shards == 0 ||
                    (std::has_single_bit(o.shards) && o.shards <= 256 && o.shards <= capacity(o)),
                "cache: shards must be 0 or a power of two, at most 256, and not exceed the "
                "maximum of the entries");
        return o;
    }

    // Whether the entry has that key. If it has not, its hit is taken back from `hit_of`.
    bool is_of(const entry& e, const Key& key, shard* hit_of, bool was_expired)
    {
        bool is_equal = false;
        try {
            is_equal = equal_(e.key, key);
        } catch (...) {
            if (hit_of)
                hit_of->take_back_hit(was_expired);
            throw;
        }
        if (!is_equal && hit_of) [[unlikely]]
            hit_of->take_back_hit(was_expired);
        return is_equal;
    }

    // Other bits of the hash than those that choose the place in the table.
    shard& shard_of(std::size_t h) noexcept
    {
        return *shards_[(std::uint64_t(h) >> 48) & (shards_.size() - 1)];
    }

    void dispatch() noexcept
    {
        if (listeners_.has_pending_events()) [[unlikely]]
            listeners_.dispatch();
    }
    void remove_all(removal_cause cause) noexcept
    {
        removed_list removed;
        for (auto& s : shards_)
            s->take_all(removed, &cause);
    }

    // The entry of a key, expired or not, and a number that is larger than those of all entries
    // with which the key was compared, and not larger than that of any later entry.
    std::pair<entry_ptr, std::uint64_t> match(const Key& key, std::size_t h)
    {
        shard& s = shard_of(h);
        const std::uint64_t next = s.next_number();
        entry_ptr e = s.find(h, next);
        while (e && !equal_(e->key, key))
            e = s.find(h, e->number);
        return {std::move(e), next};
    }
    void supersede(const Key& key, std::size_t h)
    {
        if (!this->has_flights())
            return;
        const pin_type pin = find_flight<entry>(static_cast<base&>(*this), key, h, equal_,
                                                []() -> std::nullptr_t { return nullptr; });
        if (pin)
            base::supersede(*pin.get());
    }

    // Sets the weight and the times of an entry with a value.
    void complete(entry& e)
    {
        if (options_.weigher)
            e.set_weight(options_.weigher(e.key, *e.value));
        cache_lifetime life{options_.ttl, options_.idle_ttl};
        if (options_.lifetime_of)
            life = options_.lifetime_of(e.key, *e.value);
        e.idle_ttl = life.idle_ttl;
        e.expires_at = saturating_add(now(), with_jitter(life.ttl));
    }
    nanoseconds with_jitter(nanoseconds ttl) noexcept
    {
        if (options_.jitter == 0 || ttl == nanoseconds::max() || ttl <= nanoseconds::zero())
            return ttl;
        const std::uint64_t n = jitter_.fetch_add(1, std::memory_order_relaxed);
        const auto most =
            static_cast<std::int64_t>(static_cast<double>(ttl.count()) * options_.jitter);
        return ttl - nanoseconds(random_source(seed_ + n).between(0, most));
    }

    bool loaded(flight<Threading>& plain, bool succeeded) noexcept override
    {
        auto& f = static_cast<flight_type&>(plain);
        entry& e = *f.cell;
        try {
            if (succeeded) {
                complete(e);
            } else if (options_.negative_ttl != nanoseconds::zero()) {
                const failure failed(e.error);
                if (options_.is_negative ? options_.is_negative(failed) : !failed.is_cancelled()) {
                    e.expires_at = saturating_add(now(), options_.negative_ttl);
                    f.keeps_failure = true;
                }
            }
            if (succeeded || f.keeps_failure)
                std::tie(f.replaced, f.below) = match(e.key, e.hash());
        } catch (...) {
            e.value.reset();
            e.error = std::current_exception();
            f.keeps_failure = false;
            return false;
        }
        return succeeded;
    }
    void settle(flight<Threading>& plain, bool succeeded, bool is_current) noexcept override
    {
        auto& f = static_cast<flight_type&>(plain);
        shard& s = shard_of(f.hash);
        const nanoseconds time = now();
        const bool serves_stale = !succeeded && is_current && f.stale && f.stale->value &&
                                  time >= f.stale->expires_at &&
                                  s.may_replace_failure(*f.stale, time);
        if (serves_stale)
            f.result = f.stale;
        if (!succeeded)
            s.count_failure(f.hash, serves_stale);
        // A failure is not kept instead of a value that can be handed out.
        const bool has_value =
            f.replaced && f.replaced->value && s.match_of(*f.replaced, time) != cache_match::none;
        if (is_current && (succeeded || (f.keeps_failure && !serves_stale && !has_value)))
            s.replace(f.cell, f.replaced, f.below, time, removed_);
    }
    void settled(flight<Threading>& f) noexcept override
    {
        removed_list removed;
        this->guarded([&] { removed.swap(removed_); });
        shard_of(f.hash).grow();
        dispatch();
    }

    const options_type options_;
    [[no_unique_address]] const Hash hash_;
    [[no_unique_address]] const Equal equal_;
    const std::uint64_t seed_;
    const bool uses_time_;
    policy_atomic<Threading, std::uint64_t> jitter_{0};
    listeners_type listeners_;
    std::vector<std::unique_ptr<shard>> shards_;
    removed_list removed_; // guarded by the lock of the flights; see settled()
};

} // namespace turnstile::inline v0_1::detail
