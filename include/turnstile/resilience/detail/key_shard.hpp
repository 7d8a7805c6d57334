#pragma once

#include <turnstile/core/detail/start_wait.hpp>
#include <turnstile/core/detail/telling_state.hpp>
#include <turnstile/resilience/detail/keyed_gate.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

namespace turnstile::detail {

// What the listener of a keyed rate limiter is told.
template <class Key>
struct keyed_event {
    std::shared_ptr<const Key> key;
    rate_event what;
};

// The keys themselves. A key whose bucket is full, and that nobody waits for, is no different
// from one never seen: with each new key a few old ones are looked at, and such are dropped.
template <class Key, class Hash, class Equal, class Threading, class Clock>
class key_shard final
    : public telling_state<Threading, keyed_event<Key>, keyed_gate<Threading, Clock>> {
    using event = keyed_event<Key>;
    using base = telling_state<Threading, event, keyed_gate<Threading, Clock>>;
    using map = std::unordered_map<Key, key_slot, Hash, Equal>;
    using node = typename map::node_type;

public:
    using listener_type = std::function<void(const Key&, const rate_event&)>;

    template <class Executor>
    key_shard(const Executor& executor, const bandwidth& limit, std::size_t max_waiters,
              nanoseconds origin, const listener_type& listener, const Hash& hash,
              const Equal& equal)
        : base(executor, limit, max_waiters, origin), map_(0, hash, equal)
    {
        if (listener)
            this->listeners_.add([listener](const event& e) { listener(*e.key, e.what); });
    }

    bool try_acquire(const Key& key, std::uint64_t n, nanoseconds* retry_after)
    {
        rate_stamp ignored;
        nanoseconds delay = nanoseconds::max();
        const bool taken = look(key, n, nanoseconds::zero(), ignored, delay).is_granted();
        if (retry_after)
            *retry_after = taken ? nanoseconds::zero() : delay;
        return taken;
    }

    // For an operation, which is told: there is no memory for a new key.
    verdict try_now(const Key& key, std::uint64_t n, nanoseconds within, rate_stamp& stamp,
                    nanoseconds& retry_after) noexcept
    {
        try {
            return look(key, n, within, stamp, retry_after);
        } catch (...) {
            this->update_and_tell([&](ready_list&) {
                this->note_rejection(&key, errc::rejected, n, nanoseconds::max());
            });
            return verdict::refused(errc::rejected);
        }
    }

    nanoseconds time_until(const Key& key, std::uint64_t n) noexcept
    {
        return this->update([&](ready_list& ready) {
            if (!this->check(n).must_wait())
                return nanoseconds::max();
            this->serve(ready);
            const auto it = map_.find(key);
            return this->delay(it == map_.end() ? fresh_ : it->second, n, this->now());
        });
    }

    std::size_t size() noexcept
    {
        return this->update([&](ready_list&) { return map_.size(); });
    }

    // Drops every key it can; how many. The lock is given up now and then.
    std::size_t purge() noexcept
    {
        std::size_t dropped = 0;
        std::size_t position = 0;
        bool more = true;
        while (more) {
            dropped_keys some;
            this->update([&](ready_list&) {
                const nanoseconds now = this->now();
                for (int i = 0; i != 256 && position < map_.bucket_count(); ++i) {
                    if (!forget(position, some, now))
                        break;
                    ++position;
                }
                more = position < map_.bucket_count();
            });
            dropped += some.size;
        }
        return dropped;
    }

    void change(const bandwidth& limit) noexcept
    {
        this->update_and_tell([&](ready_list& ready) {
            const nanoseconds now = this->now();
            const gcra old = this->change_rule(limit, now, ready);
            this->convert(fresh_, old, now);
            for (auto& entry : map_)
                this->convert(entry.second, old, now);
        });
    }

    // Nobody is told anything more.
    void end_listening() noexcept { this->listeners_.close(); }

private:
    // Keys that are taken out of the table, to be destroyed without the lock.
    struct dropped_keys {
        std::array<node, 32> nodes;
        std::size_t size = 0;
    };

    verdict look(const Key& key, std::uint64_t n, nanoseconds within, rate_stamp& stamp,
                 nanoseconds& delay)
    {
        dropped_keys dropped;
        std::optional<Key> copy; // of a new key, made without the lock
        std::optional<verdict> result;
        std::exception_ptr failed;
        while (!result && !failed) {
            this->update_and_tell([&](ready_list& ready) {
                auto it = map_.find(key);
                const bool is_new = it == map_.end();
                if (is_new && !this->check(n).must_wait()) {
                    result = this->check(n);
                } else if (!is_new) {
                    result = base::look(it->second, n, within, stamp, delay, ready);
                } else if (copy) {
                    try {
                        it = map_.try_emplace(std::move(*copy), fresh_).first;
                        result = base::look(it->second, n, within, stamp, delay, ready);
                        forget_some(dropped);
                    } catch (...) {
                        failed = std::current_exception();
                    }
                }
                if (result && !result->is_granted() && !result->must_wait())
                    this->note_rejection(&key, result->code(), n, delay);
            });
            if (!result && !failed)
                copy.emplace(key);
        }
        if (failed)
            std::rethrow_exception(failed);
        return *result;
    }

    // Looks at the next few buckets of the table: more than one for each new key, so that it
    // has been everywhere before the table has doubled.
    void forget_some(dropped_keys& out) noexcept
    {
        const nanoseconds now = this->now();
        for (int i = 0; i != 3; ++i, ++cursor_) {
            if (cursor_ >= map_.bucket_count())
                cursor_ = 0;
            if (!forget(cursor_, out, now))
                return;
        }
    }

    // Takes the idle keys out of one bucket; false if there is no room for more.
    bool forget(std::size_t bucket, dropped_keys& out, nanoseconds now) noexcept
    {
        for (auto it = map_.begin(bucket); it != map_.end(bucket);) {
            const auto& entry = *it++;
            if (!this->is_idle(entry.second, now))
                continue;
            if (out.size == out.nodes.size())
                return false;
            if (entry.second.full() > fresh_.full())
                fresh_ = entry.second;
            out.nodes[out.size++] = map_.extract(map_.find(entry.first));
        }
        return true;
    }

    key_slot* find(const void* key) noexcept override
    {
        const auto it = map_.find(*static_cast<const Key*>(key));
        return it == map_.end() ? nullptr : &it->second;
    }
    key_slot* find_or_add(const void* key) noexcept override
    {
        try {
            return &map_.try_emplace(*static_cast<const Key*>(key), fresh_).first->second;
        } catch (...) {
            return nullptr;
        }
    }
    void publish(const void* key, const rate_event& what) noexcept override
    {
        if (!this->listeners_.somebody())
            return;
        try {
            this->listeners_.publish({std::make_shared<Key>(*static_cast<const Key*>(key)), what});
        } catch (...) { // then nobody is told
        }
    }

    map map_;
    // What a new key starts from: it may be one that was forgotten. Such a bucket was full, the
    // last of them then; so if the clock has gone back since, it is not full yet.
    key_slot fresh_;
    std::size_t cursor_ = 0;
};

// A wait for n permits of one key.
template <class Owner>
struct keyed_ask {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = typename Owner::shard_type;
    using result_type = void;
    using waiter_type = keyed_waiter;
    static constexpr bool refundable = false;

    Owner* owner;
    typename Owner::key_type key;
    std::uint64_t n;
    nanoseconds within;
    rate_stamp stamp{};
    nanoseconds retry_after = nanoseconds::max(); // if try_now() refuses

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return owner->shard(key); }

    verdict try_now() noexcept { return state().try_now(key, n, within, stamp, retry_after); }
    void give_back() const noexcept { state().give_back(&key, n, stamp); }
    rejection refusal(errc code) const { return rejection(code, retry_after); }
    void prepare(keyed_waiter& w) const noexcept
    {
        w.need = n;
        w.key = &key;
        w.stamp = stamp;
        if (within != nanoseconds::max())
            w.deadline = saturating_add(state_type::now(), within);
    }
};

} // namespace turnstile::detail
