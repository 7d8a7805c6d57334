// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/detail/key_table.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_state.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Key, class Threading>
struct key_entry final : key_node<Threading> {
    key_entry(std::size_t h, const Key& k) : key_node<Threading>(h), key(k) {}
    const Key key;
};

template <class Key, class Threading>
using key_entry_ptr = boost::intrusive_ptr<key_entry<Key, Threading>>;

// What the listener of a keyed rate limiter is told.
template <class Key, class Threading>
struct keyed_event {
    key_entry_ptr<Key, Threading> entry;
    rate_event what;
};

template <class Key, class Threading>
using keyed_listeners = listener_list<keyed_event<Key, Threading>, Threading>;

// Some of the keys of a keyed rate limiter. A key whose bucket is full, and that nothing refers
// to, is no different from one never seen: with each new key a few old ones are looked at, and
// such are dropped.
//
// Keys are copied, hashed, compared and destroyed without the lock. So that code may throw, and
// use the limiter.
template <class Key, class Equal, class Threading, class Clock>
class key_shard final : public keyed_rate_limiter_state<Threading, Clock> {
    using base = keyed_rate_limiter_state<Threading, Clock>;
    using table = key_table<Threading>;
    using node = typename table::node;

public:
    using entry = key_entry<Key, Threading>;
    using entry_ptr = boost::intrusive_ptr<entry>;
    using listeners_type = keyed_listeners<Key, Threading>;

    template <class Executor>
    key_shard(const Executor& executor, const bandwidth& limit, std::size_t max_waiters,
              nanoseconds origin, std::shared_ptr<listeners_type> listeners, const Equal& equal)
        : base(executor, limit, max_waiters, origin), listeners_(std::move(listeners)),
          equal_(equal)
    {
    }

    // The entry of a key, or null.
    entry_ptr find(const Key& key, std::size_t hash) { return search(key, hash, false); }
    // The same, and a new one if need be. A request that can never be granted makes no key: it
    // gets an entry of its own.
    entry_ptr find_or_add(const Key& key, std::size_t hash, std::uint64_t n)
    {
        const bool possible = this->guarded([&] { return n != 0 && n <= this->rule().burst(); });
        return possible ? search(key, hash, true) : entry_ptr(new entry(hash, key));
    }

    wait_decision look(entry& e, std::uint64_t n, nanoseconds deadline, rate_stamp& stamp,
                       nanoseconds& retry_after) noexcept
    {
        return update_and_tell([&](ready_list& ready) {
            // An entry that is not in the table has no permits, also if the limit has changed.
            const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
            return base::look(e, e.number == 0 && n != 0 ? most : n, deadline, stamp, retry_after,
                              ready);
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

    // Drops every key it can; how many. The lock is given up now and then.
    std::size_t purge() noexcept
    {
        std::size_t dropped = 0;
        std::size_t position = 0;
        bool more = true;
        while (more) {
            dropped_keys some;
            this->guarded([&] {
                const nanoseconds now = this->now();
                for (int i = 0; i != 256 && position < table_.buckets(); ++i, ++position) {
                    if (!forget(position, some, now))
                        break;
                }
                more = position < table_.buckets();
            });
            dropped += some.size;
        }
        return dropped;
    }

    void change(const bandwidth& limit) noexcept
    {
        update_and_tell([&](ready_list& ready) {
            const nanoseconds now = this->now();
            const gcra old = this->change_rule(limit, ready);
            this->convert(fresh_, old, now);
            table_.for_each([&](node& n) { this->convert(n, old, now); });
            this->convert_lines(old, now, ready);
        });
    }

    // As of every state, for one that publishes what it decides in admit().
    void start(waiter& w) noexcept override
    {
        if (!listeners_->has_listeners())
            return base::start(w);
        const std::shared_ptr<listeners_type> listeners = listeners_;
        base::start(w);
        listeners->dispatch();
    }

private:
    // Keys that are taken out of the table, to be destroyed without the lock.
    struct dropped_keys {
        std::array<typename table::node_ptr, 32> nodes;
        std::size_t size = 0;
    };

    // Looks at one entry with the same hash after the other. Each is kept by a reference while it
    // is compared.
    entry_ptr search(const Key& key, std::size_t hash, bool add)
    {
        dropped_keys dropped;
        typename table::room room;
        entry_ptr made;
        for (std::uint64_t seen = 0;;) {
            std::size_t room_needed = 0;
            const auto found = this->guarded([&]() -> typename table::node_ptr {
                if (auto next = table_.next(hash, seen); next || !made)
                    return next;
                if (table_.room_needed() > room.size) {
                    room_needed = table_.room_needed();
                    return nullptr;
                }
                if (table_.room_needed() != 0)
                    table_.grow(room);
                static_cast<key_slot&>(*made) = fresh_;
                table_.insert(made);
                forget_some(dropped);
                return made;
            });
            if (!found && !add)
                return nullptr;
            if (!found && made)
                room = table::make_room(room_needed);
            else if (!found)
                made = new entry(hash, key);
            else if (found == made || equal_(static_cast<entry&>(*found).key, key))
                return entry_ptr(static_cast<entry*>(found.get()));
            else
                seen = found->number;
        }
    }

    // Looks at the next few buckets of the table: more than one for each new key, so that it
    // has been everywhere before the table has doubled.
    void forget_some(dropped_keys& out) noexcept
    {
        const nanoseconds now = this->now();
        for (int i = 0; i != 3; ++i, ++cursor_) {
            if (cursor_ >= table_.buckets())
                cursor_ = 0;
            if (!forget(cursor_, out, now))
                return;
        }
    }

    // Takes the idle keys out of one bucket; false if there is no room for more.
    bool forget(std::size_t position, dropped_keys& out, nanoseconds now) noexcept
    {
        return table_.forget(
            position, [&](const node& n) { return this->is_idle(n, now); },
            [&](typename table::node_ptr& n) {
                if (out.size == out.nodes.size())
                    return false;
                if (n->full() > fresh_.full())
                    fresh_ = *n;
                out.nodes[out.size++] = std::move(n);
                return true;
            });
    }

    void publish(key_slot& slot, const rate_event& what) noexcept override
    {
        if (listeners_->has_listeners())
            listeners_->publish({&static_cast<entry&>(slot), what});
    }

    // Runs f(ready) under the lock, then tells the listener what there is to tell.
    template <class F>
    auto update_and_tell(F f) noexcept
    {
        struct teller {
            std::shared_ptr<listeners_type> listeners;
            ~teller()
            {
                if (listeners)
                    listeners->dispatch();
            }
        } after;
        return this->update([&](ready_list& ready) {
            struct look {
                key_shard& shard;
                teller& after;
                ~look()
                {
                    // Under the lock the state is still there.
                    if (shard.listeners_->has_pending_events())
                        after.listeners = shard.listeners_;
                }
            } const at_the_end{*this, after};
            return f(ready);
        });
    }
    void woken() noexcept override { listeners_->dispatch(); }

    const std::shared_ptr<listeners_type> listeners_; // of the whole limiter
    [[no_unique_address]] const Equal equal_;
    table table_;
    // What a new key starts from: it may be one that was forgotten. Such a bucket was full, the
    // last of them then; so if the clock has gone back since, it is not full yet.
    key_slot fresh_;
    std::size_t cursor_ = 0;
};

// A wait for n permits of one key.
template <class Owner>
struct keyed_request : rate_need {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = typename Owner::shard_type;
    using waiter_type = keyed_waiter;

    keyed_request(Owner& o, const typename Owner::key_type& key, std::uint64_t permits,
                  nanoseconds longest)
        : rate_need{permits, longest}, owner(&o)
    {
        const std::size_t hash = o.hash(key);
        shard = &o.shard(hash);
        entry = shard->find_or_add(key, hash, permits);
    }

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *shard; }

    wait_decision try_now() noexcept
    {
        set_deadline(state_type::now());
        return shard->look(*entry, n, deadline, stamp, retry_after);
    }
    void give_back() const noexcept { shard->give_back(*entry, n, stamp); }
    void prepare(keyed_waiter& w) const noexcept
    {
        rate_need::prepare(w);
        w.slot = entry.get();
    }

    Owner* owner;
    state_type* shard = nullptr;
    typename state_type::entry_ptr entry;
};

} // namespace turnstile::inline v0_1::detail
