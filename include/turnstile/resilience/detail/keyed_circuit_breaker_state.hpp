// SPDX-License-Identifier: BSL-1.0
// The state of basic_keyed_circuit_breaker: shards with a lock and a table of entries each, and the
// listeners. An entry is a key with a circuit_breaker_machine. The lock of its shard guards it, and
// the next call makes the changes that are due, so there are no timers and no waiters.
//
// Operations and permits own their entry, and an entry owns the state, so that both may outlive the
// object. The object breaks the cycle: its destructor removes all entries from the tables.
//
// Keys are copied, hashed, compared and destroyed, and listeners and the functions of the options
// called, without a lock.
//
// A circuit that behaves like that of a key that was never seen, and to which no operation refers,
// is forgotten; so is one that has not been used for a while. See shared_key_table for the time.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/detail/util/shared_key_table.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/resilience/circuit_breaker_machine.hpp>
#include <turnstile/resilience/keyed_circuit_breaker_options.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The circuit of a key, without the key. The lock of the shard guards it.
struct keyed_circuit {
    explicit keyed_circuit(const circuit_breaker_options& options) : machine(options) {}

    // Whether it behaves like a new circuit.
    bool is_fresh(nanoseconds now) noexcept
    {
        return machine.state() == circuit_state::closed && !machine.is_forced() &&
               machine.window(now) == call_tally();
    }
    // Whether it may be forgotten if it has not been used for a while.
    bool is_stale(nanoseconds now, nanoseconds forget_after) const noexcept
    {
        return !machine.is_forced() && saturating_sub(now, last_use) >= forget_after &&
               (machine.state() != circuit_state::open || machine.next_change() <= now);
    }

    circuit_breaker_machine machine;
    nanoseconds last_use{};
};

template <class State>
class keyed_circuit_breaker_entry final : public keyed_circuit,
                                          public shared_key_node<typename State::threading> {
public:
    using key_type = typename State::key_type;

    keyed_circuit_breaker_entry(std::shared_ptr<State> state, std::size_t h, const key_type& k)
        : keyed_circuit(state->options()), shared_key_node<typename State::threading>(h), key(k),
          state_(std::move(state))
    {
    }

    // The functions that circuit_breaker_permit and async_call use.
    bool admit_call(circuit_breaker_ticket& ticket, nanoseconds& retry_after) noexcept
    {
        return state_->admit_call(*this, ticket, retry_after);
    }
    void report(const circuit_breaker_ticket& ticket, call_outcome outcome) noexcept
    {
        state_->report(*this, ticket, outcome);
    }
    auto& listeners() const noexcept { return state_->listeners(); }
    const auto& classify() const noexcept { return state_->options().classify; }

    const key_type key;

private:
    const std::shared_ptr<State> state_;
};

template <class Key, class Equal, class Threading, clock_policy Clock>
class keyed_circuit_breaker_state : public std::enable_shared_from_this<
                                        keyed_circuit_breaker_state<Key, Equal, Threading, Clock>> {
public:
    using key_type = Key;
    using threading = Threading;
    using entry = keyed_circuit_breaker_entry<keyed_circuit_breaker_state>;
    using entry_ptr = boost::intrusive_ptr<entry>;

    // A change that is to be reported to the listeners.
    struct publication {
        entry_ptr changed;
        circuit_state from;
        circuit_state to;
    };
    using listeners_type = listener_list<publication, Threading>;

    keyed_circuit_breaker_state(const circuit_breaker_options& options, nanoseconds forget_after,
                                const Equal& equal)
        : options_(options), forget_after_(forget_after), equal_(equal)
    {
    }

    const circuit_breaker_options& options() const noexcept { return options_; }
    listeners_type& listeners() noexcept { return listeners_; }

    // The object is destroyed: no listener is called from here on.
    void close() noexcept
    {
        listeners_.close();
        for (shard& s : shards_)
            s.table.clear();
    }

    // Returns the entry of a key, or null.
    entry_ptr find(const Key& key, std::size_t hash)
    {
        return search(key, hash, [] { return entry_ptr(); });
    }
    entry_ptr find_or_add(const Key& key, std::size_t hash)
    {
        return search(key, hash,
                      [&] { return entry_ptr(new entry(this->shared_from_this(), hash, key)); });
    }

    bool admit_call(entry& e, circuit_breaker_ticket& ticket, nanoseconds& retry_after) noexcept
    {
        return update(e, [&](shard& s, nanoseconds now) {
            if (const auto given = e.machine.admit(now)) {
                ticket = *given;
                return true;
            }
            ++s.totals.rejected;
            retry_after = e.machine.retry_after(now);
            return false;
        });
    }

    void report(entry& e, const circuit_breaker_ticket& ticket, call_outcome outcome) noexcept
    {
        update(e, [&](shard& s, nanoseconds now) {
            ++(ticket.generation != e.machine.generation() ? s.totals.late
               : outcome == call_outcome::success          ? s.totals.successes
               : outcome == call_outcome::failure          ? s.totals.failures
                                                           : s.totals.ignored);
            if (e.machine.report(ticket, outcome, now))
                changed(s, e);
        });
    }

    // Calls a function of the machine that may change its state.
    void call_machine(entry& e, bool (circuit_breaker_machine::*function)(nanoseconds)) noexcept
    {
        update(e, [&](shard& s, nanoseconds now) {
            if ((e.machine.*function)(now))
                changed(s, e);
        });
    }
    // Returns f(machine, now) for the machine at the present. That is no use of the circuit.
    template <class F>
    auto query(entry& e, F f) noexcept
    {
        return update(
            e, [&](shard&, nanoseconds now) { return f(e.machine, now); }, false);
    }

    std::size_t size() noexcept
    {
        std::size_t sum = 0;
        for (shard& s : shards_) {
            const std::scoped_lock lock(s.mutex);
            sum += s.table.size();
        }
        return sum;
    }
    std::size_t purge() noexcept
    {
        std::size_t sum = 0;
        for (shard& s : shards_)
            sum += s.table.purge(guard(s), idle_check());
        return sum;
    }
    keyed_circuit_breaker_stats stats() noexcept
    {
        keyed_circuit_breaker_stats sum;
        for (shard& s : shards_) {
            const std::scoped_lock lock(s.mutex);
            sum.keys += s.table.size();
            sum.successes += s.totals.successes;
            sum.failures += s.totals.failures;
            sum.ignored += s.totals.ignored;
            sum.late += s.totals.late;
            sum.rejected += s.totals.rejected;
            sum.opened += s.totals.opened;
        }
        return sum;
    }

private:
    struct shard {
        typename Threading::mutex_type mutex;
        shared_key_table<entry> table;
        keyed_circuit_breaker_stats totals;
    };

    static nanoseconds now() noexcept { return now_on<Clock>(); }

    // Uses other bits of the hash than the table of the shard.
    shard& shard_of(std::size_t hash) noexcept
    {
        if constexpr (shard_count == 1)
            return shards_[0];
        else
            return shards_[(std::uint64_t(hash) * 0x9E3779B97F4A7C15U) >> 60];
    }
    static auto guard(shard& s) noexcept
    {
        return [&s](auto f) {
            const std::scoped_lock lock(s.mutex);
            return f();
        };
    }
    // Decides which entries the table removes. Reads the clock once, when it is first called.
    auto idle_check() const noexcept
    {
        return [this, present = std::optional<nanoseconds>()](keyed_circuit& c) mutable {
            if (!present)
                present = now();
            return c.is_fresh(*present) || c.is_stale(*present, forget_after_);
        };
    }

    template <class Make>
    entry_ptr search(const Key& key, std::size_t hash, Make make)
    {
        shard& s = shard_of(hash);
        return s.table.search(
            guard(s), hash, [&](const entry& e) { return equal_(e.key, key); }, make,
            [](entry& e) { e.last_use = now(); }, idle_check());
    }

    // Under the lock.
    void changed(shard& s, entry& e) noexcept
    {
        const circuit_state state = e.machine.state();
        s.totals.opened += state == circuit_state::open ? 1 : 0;
        if (listeners_.has_listeners())
            listeners_.publish({entry_ptr(&e), e.machine.changed_from(), state});
    }

    // Advances the machine to the present, and returns f(shard, now), called under the lock. Then
    // calls the function of the options and the listeners. The caller, or the object, owns the
    // entry, and a listener may destroy both.
    template <class F>
    auto update(entry& e, F f, bool is_use = true) noexcept
    {
        struct epilogue {
            keyed_circuit_breaker_state& state;
            entry_ptr keep_alive;
            std::uint64_t generation = 0;

            ~epilogue()
            {
                if (generation != 0 && !state.listeners_.is_closed())
                    state.set_break_duration(*keep_alive, generation);
                if (keep_alive)
                    state.listeners_.dispatch();
            }
        } after{*this, nullptr};
        shard& s = shard_of(e.hash);
        const std::scoped_lock lock(s.mutex);
        const nanoseconds present = now();
        const std::uint64_t before = e.machine.generation();
        if (is_use)
            e.last_use = present;
        while (e.machine.advance(present))
            changed(s, e);
        struct check {
            epilogue& after;
            entry& e;
            std::uint64_t before;
            ~check()
            {
                if (e.machine.generation() == before)
                    return;
                after.keep_alive = &e;
                if (e.machine.wants_break_duration())
                    after.generation = e.machine.generation();
            }
        } const at_the_end{after, e, before};
        return f(s, present);
    }

    // Asks options.break_duration, without the lock.
    void set_break_duration(entry& e, std::uint64_t generation) noexcept
    {
        shard& s = shard_of(e.hash);
        const auto guarded = guard(s);
        const break_info info = guarded([&] { return e.machine.last_break(); });
        nanoseconds duration = info.proposed;
        try {
            duration = options_.break_duration(info);
        } catch (...) { // the proposed duration is used
        }
        guarded([&] { e.machine.set_break_duration(generation, duration); });
    }

    static constexpr std::size_t shard_count = Threading::is_confined ? 1 : 16;

    const circuit_breaker_options options_;
    const nanoseconds forget_after_;
    [[no_unique_address]] const Equal equal_;
    listeners_type listeners_;
    std::array<shard, shard_count> shards_;
};

} // namespace turnstile::inline v0_1::detail
