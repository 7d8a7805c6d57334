// SPDX-License-Identifier: BSL-1.0
// A shard of a keyed rate limiter: the keys whose hashes fall into it, with their buckets, waiters,
// lock and timer. basic_keyed_rate_limiter has 16 shards, or one if it is confined to a strand.
//
// Keys are copied, hashed, compared and destroyed without the lock, so that user code may throw and
// may use the limiter. For that, keys live in reference-counted entries.
//
// A key whose bucket is full, and to which nothing but the table refers, behaves like a key that
// was never seen. Each new key makes the shard examine a few places of the table and remove such
// keys.
#pragma once

#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/util/shared_key_table.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_state.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A key with its bucket. The table, operations and events share it.
template <class Key, class Threading>
struct keyed_rate_limiter_entry final : keyed_rate_limiter_word, shared_key_node<Threading> {
    keyed_rate_limiter_entry(std::size_t h, const Key& k) : shared_key_node<Threading>(h), key(k) {}
    const Key key;
};

template <class Key, class Threading>
using keyed_rate_limiter_entry_ptr = boost::intrusive_ptr<keyed_rate_limiter_entry<Key, Threading>>;

// A rejection that is to be reported to the listeners.
template <class Key, class Threading>
struct keyed_rate_limiter_publication {
    keyed_rate_limiter_entry_ptr<Key, Threading> entry;
    errc code;
    std::uint64_t permits;
    nanoseconds retry_after;
};

template <class Key, class Threading>
using keyed_rate_limiter_listeners =
    listener_list<keyed_rate_limiter_publication<Key, Threading>, Threading>;

template <class Key, class Equal, class Threading, class Clock>
class keyed_rate_limiter_shard final : public keyed_rate_limiter_state<Threading, Clock> {
    using base = keyed_rate_limiter_state<Threading, Clock>;

public:
    using entry = keyed_rate_limiter_entry<Key, Threading>;
    using entry_ptr = boost::intrusive_ptr<entry>;
    using listeners_type = keyed_rate_limiter_listeners<Key, Threading>;

    template <class Executor>
    keyed_rate_limiter_shard(const Executor& executor, const bandwidth& limit,
                             std::size_t max_waiters, nanoseconds origin,
                             std::shared_ptr<listeners_type> listeners, const Equal& equal)
        : base(executor, limit, max_waiters, origin), listeners_(std::move(listeners)),
          equal_(equal)
    {
    }

    // Returns the entry of a key, or null.
    entry_ptr find(const Key& key, std::size_t hash) { return search(key, hash, false); }
    // Returns the entry of a key, and adds the key if necessary. For a request that can never be
    // granted, returns an entry that is not in the table.
    entry_ptr find_or_add(const Key& key, std::size_t hash, std::uint64_t n)
    {
        const bool possible = this->guarded([&] { return n != 0 && n <= this->rule().burst(); });
        return possible ? search(key, hash, true) : entry_ptr(new entry(hash, key));
    }

    wait_decision try_acquire(entry& e, std::uint64_t n, nanoseconds deadline,
                              rate_limiter_receipt& receipt, nanoseconds& retry_after) noexcept
    {
        return update_and_dispatch([&](ready_list& ready) {
            // An entry that is not in the table has no permits, even if the limit has changed.
            if (e.number == 0)
                return base::refuse(e, n == 0 ? errc::invalid_argument : errc::too_large, n,
                                    retry_after);
            return base::attempt(e, n, deadline, receipt, retry_after, ready);
        });
    }

    nanoseconds time_until(const Key& key, std::size_t hash, std::uint64_t n)
    {
        const entry_ptr e = find(key, hash);
        return this->update([&](ready_list& ready) {
            this->serve(ready);
            return this->delay(e ? *e : fresh_, n);
        });
    }

    std::size_t size() noexcept
    {
        return this->guarded([&] { return table_.size(); });
    }

    // Removes all idle keys; returns their number. The lock is released from time to time.
    std::size_t purge() noexcept
    {
        return table_.purge([this](auto f) { return this->guarded(f); }, idle_check());
    }

    // The caller dispatches the events, once all shards are changed.
    void set_limits(const bandwidth& limit) noexcept
    {
        this->update([&](ready_list& ready) {
            const nanoseconds now = this->now();
            const gcra old = this->change_rule(limit, ready);
            this->convert(fresh_, old, now);
            table_.for_each([&](entry& e) { this->convert(e, old, now); });
            this->convert_lines(old, now, ready);
        });
    }

    // As in observable_state: admit() may publish a rejection.
    void start(waiter& w) noexcept override
    {
        if (!listeners_->has_listeners())
            return base::start(w);
        const std::shared_ptr<listeners_type> listeners = listeners_;
        base::start(w);
        listeners->dispatch();
    }

private:
    entry_ptr search(const Key& key, std::size_t hash, bool add)
    {
        return table_.search([this](auto f) { return this->guarded(f); }, hash,
                             [&](const entry& e) { return equal_(e.key, key); },
                             [&] { return entry_ptr(add ? new entry(hash, key) : nullptr); },
                             [this](keyed_rate_limiter_word& word) { word = fresh_; },
                             idle_check());
    }

    // Decides which entries the table removes. Reads the clock once, when it is first called, which
    // is under the lock.
    auto idle_check() noexcept
    {
        return [this, now = std::optional<nanoseconds>()](const entry& e) mutable {
            if (!now)
                now = this->now();
            if (!this->is_idle(e, *now))
                return false;
            if (e.full() > fresh_.full())
                fresh_ = e;
            return true;
        };
    }

    void publish(keyed_rate_limiter_word& word, errc code, std::uint64_t n,
                 nanoseconds retry_after) noexcept override
    {
        if (listeners_->has_listeners())
            listeners_->publish({&static_cast<entry&>(word), code, n, retry_after});
    }

    // Runs f(ready) under the lock, then calls the listeners.
    template <class F>
    auto update_and_dispatch(F f) noexcept
    {
        struct dispatcher {
            std::shared_ptr<listeners_type> listeners;
            ~dispatcher()
            {
                if (listeners)
                    listeners->dispatch();
            }
        } after;
        return this->update([&](ready_list& ready) {
            // A granted waiter may destroy the state as soon as the lock is released.
            struct listeners_reference {
                keyed_rate_limiter_shard& shard;
                dispatcher& after;
                ~listeners_reference()
                {
                    if (shard.listeners_->has_pending_events())
                        after.listeners = shard.listeners_;
                }
            } const at_the_end{*this, after};
            return f(ready);
        });
    }
    void woken() noexcept override { listeners_->dispatch(); }

    const std::shared_ptr<listeners_type> listeners_; // shared by all shards
    [[no_unique_address]] const Equal equal_;
    shared_key_table<entry> table_;
    // The word of a new key, which may have been removed before. It is full when the last removed
    // bucket was; so if the clock has gone back since, it is not full yet.
    keyed_rate_limiter_word fresh_;
};

// A wait for permits of one key.
template <class Owner>
struct keyed_rate_limiter_request : rate_limiter_request_base {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = typename Owner::shard_type;
    using waiter_type = keyed_rate_limiter_waiter;

    keyed_rate_limiter_request(Owner& o, const typename Owner::key_type& key, std::uint64_t n,
                               nanoseconds longest)
        : rate_limiter_request_base{n, longest}, owner(&o)
    {
        const std::size_t hash = o.hash(key);
        shard = &o.shard_of(hash);
        entry = shard->find_or_add(key, hash, n);
    }

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *shard; }

    wait_decision try_now() noexcept
    {
        set_deadline(state_type::now());
        return shard->try_acquire(*entry, permits, deadline, receipt, retry_after);
    }
    void give_back() const noexcept { shard->give_back(*entry, permits, receipt); }
    void prepare(keyed_rate_limiter_waiter& w) const noexcept
    {
        rate_limiter_request_base::prepare(w);
        w.word = entry.get();
    }

    Owner* owner;
    state_type* shard = nullptr;
    typename state_type::entry_ptr entry;
};

} // namespace turnstile::inline v0_1::detail
