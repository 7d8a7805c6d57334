// SPDX-License-Identifier: BSL-1.0
// The state of shared_mutex, and the requests of its operations. At any time the mutex is held by
// any number of readers, one of which may have the upgradable lock, or by one writer.
//
// One word holds the locks twice, and two flags. Its lower half counts all locks:
//
//    31       4          3          2        1           0
//   [ readers  | orphaned | upgrader | writer | contended ]
//
// Its upper half counts, at the same places, the locks that belong to a handle (unique_lock,
// shared_lock, upgrade_lock). The difference are the locks that were acquired without a handle,
// by try_lock(), try_lock_shared() or try_lock_upgrade().
//
//   contended   Operations wait. The word then changes only under the lock, and every fast path
//               fails. While it is clear, the word changes by compare-and-swap.
//   writer      The exclusive lock is held.
//   upgrader    The upgradable lock is held. Its holder is not counted in `readers`.
//   orphaned    The object was destroyed. No lock is granted, and every lock is released under the
//               lock. Releasing the last handle drops the reference that the object has left to
//               the handles.
//   readers     The number of shared locks. In the upper half of its range further readers wait.
//
// Invariant: no waiter at the head of its queue could be granted.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/sync/lock.hpp>
#include <turnstile/sync/lock_preference.hpp>

#include <boost/assert.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

enum class lock_mode : unsigned char { nothing, shared, upgradable, exclusive };

// Waits to exchange the lock it holds, usually nothing, for the lock it wants.
struct shared_mutex_waiter : waiter {
    using waiter::waiter;
    lock_mode held_mode = lock_mode::nothing;
    lock_mode wanted_mode = lock_mode::shared;
    std::uint64_t arrival = 0; // its number in the order of arrival
};

// Waits to exchange the lock of `handle` for the exclusive one.
struct upgrade_waiter : shared_mutex_waiter {
    using shared_mutex_waiter::shared_mutex_waiter;
    const void* handle = nullptr;
};

template <class Threading>
class TURNSTILE_EXPORT shared_mutex_state : public wait_state<Threading> {
    using word_type = std::uint64_t;

public:
    // The owner of a lock.
    enum class held_by : bool { caller, handle };

    template <class Executor>
    shared_mutex_state(const Executor& executor, lock_preference preference)
        : wait_state<Threading>(executor), preference_(preference)
    {
    }

    // Final, so that an operation calls it directly.
    void start(waiter& w) noexcept final { wait_state<Threading>::start(w); }

    lock_preference preference() const noexcept { return preference_; }
    bool is_held(lock_mode mode) const noexcept
    {
        return holds(word_.load(std::memory_order_acquire), mode);
    }
    bool is_orphaned() const noexcept { return word_.load(std::memory_order_acquire) & orphaned; }

    // Exchanges `held` for `wanted` if that needs no waiting.
    TURNSTILE_HOT bool try_acquire(lock_mode held, lock_mode wanted,
                                   held_by owner = held_by::handle) noexcept
    {
        return word_.update(quick_exchange{held, wanted, owner}, std::memory_order_acquire) ||
               (ignores_waiters(held, wanted) && try_acquire_contended(wanted, owner));
    }

    // Exchanges `held` for the weaker `kept`. Returns false, and changes nothing, if this owner
    // does not hold `held`. An upgrade that waits with the lock of `handle` fails.
    TURNSTILE_HOT bool release(lock_mode held, lock_mode kept = lock_mode::nothing,
                               held_by owner = held_by::handle,
                               const void* handle = nullptr) noexcept
    {
        return word_.update(quick_exchange{held, kept, owner}, std::memory_order_release) ||
               release_contended(held, kept, owner, handle);
    }

    // Makes a lock of the caller a handle's. Returns false, and changes nothing, if there is none.
    bool adopt(lock_mode mode) noexcept;
    // Makes the lock of `handle` the caller's.
    void detach(lock_mode mode, const void* handle) noexcept;

private:
    static constexpr word_type contended = 1;
    static constexpr word_type writer = 2;
    static constexpr word_type upgrader = 4;
    static constexpr word_type orphaned = 8;
    static constexpr word_type reader = 16;
    static constexpr word_type all_readers = 0xffff'fff0;
    static constexpr word_type many_readers = 0x8000'0000;
    static constexpr word_type all_locks = all_readers | upgrader | writer;
    static constexpr int handles_shift = 32;

    static constexpr word_type one(lock_mode mode) noexcept
    {
        switch (mode) {
        case lock_mode::shared:
            return reader;
        case lock_mode::upgradable:
            return upgrader;
        case lock_mode::exclusive:
            return writer;
        case lock_mode::nothing:
            break;
        }
        return 0;
    }
    static constexpr word_type one(lock_mode mode, held_by owner) noexcept
    {
        return owner == held_by::caller ? one(mode) : one(mode) | one(mode) << handles_shift;
    }
    static constexpr word_type with(word_type word, lock_mode mode,
                                    held_by owner = held_by::handle) noexcept
    {
        return word + one(mode, owner);
    }
    static constexpr word_type without(word_type word, lock_mode mode,
                                       held_by owner = held_by::handle) noexcept
    {
        return word - one(mode, owner);
    }
    // The lower half, in which a constant is cheaper to test.
    static constexpr std::uint32_t low(word_type word) noexcept
    {
        return static_cast<std::uint32_t>(word);
    }
    TURNSTILE_HOT static constexpr bool holds(word_type word, lock_mode mode) noexcept
    {
        const word_type places = mode == lock_mode::shared ? all_readers : one(mode);
        return mode == lock_mode::nothing || (low(word) & low(places)) != 0;
    }
    TURNSTILE_HOT static constexpr bool holds(word_type word, lock_mode mode,
                                              held_by owner) noexcept
    {
        // The readers are at the top of both halves, and a handle's reader is counted in both.
        if (mode == lock_mode::shared && owner == held_by::handle)
            return word >= one(mode, owner);
        const word_type handles = word >> handles_shift;
        return holds(owner == held_by::handle ? handles : (word & all_locks) - handles, mode);
    }
    TURNSTILE_HOT static constexpr bool is_free_for(word_type word, lock_mode wanted) noexcept
    {
        switch (wanted) {
        case lock_mode::nothing:
            return true;
        case lock_mode::shared:
            return (low(word) & low(writer | many_readers)) == 0;
        case lock_mode::upgradable:
            return (low(word) & low(writer | upgrader)) == 0;
        default:
            return (low(word) & low(all_locks)) == 0;
        }
    }

    // The change of the word without the lock, which fails if operations wait. It is a struct,
    // because the captures of a lambda are not inlined.
    struct quick_exchange {
        lock_mode held;
        lock_mode wanted;
        held_by owner;

        // A handle holds the lock that it releases, unless its upgrade was granted and has not
        // completed: then there is a writer, and the exchange must fail.
        TURNSTILE_HOT constexpr word_type pending_upgrade() const noexcept
        {
            const bool can_upgrade = held == lock_mode::shared || held == lock_mode::upgradable;
            return can_upgrade && owner == held_by::handle ? writer : 0;
        }

        TURNSTILE_HOT bool operator()(word_type& word) const noexcept
        {
            if ((low(word) & low(contended | orphaned | pending_upgrade())) != 0 ||
                (owner == held_by::caller && !holds(word, held, owner)) ||
                !is_free_for(without(word, held, owner), wanted))
                return false;
            word = with(without(word, held, owner), wanted, owner);
            return true;
        }
    };

    bool ignores_waiters(lock_mode held, lock_mode wanted) const noexcept
    {
        return preference_ == lock_preference::prefer_readers && held == lock_mode::nothing &&
               wanted != lock_mode::exclusive;
    }

    bool try_acquire_contended(lock_mode wanted, held_by owner) noexcept;
    bool release_contended(lock_mode held, lock_mode kept, held_by owner,
                           const void* handle) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override { take_back(w, ready); }
    bool keep_for_handles() noexcept override;
    void take_all(waiter_list& out) noexcept override;

    word_type set_contended() noexcept;
    waiter_list& queue_of(const shared_mutex_waiter& w) noexcept;
    bool has_queued() const noexcept;
    shared_mutex_waiter* next_to_grant(word_type word) noexcept;
    template <class Decided>
    void serve_with(word_type word, Decided decided) noexcept;
    void serve(word_type word, ready_list& ready) noexcept;
    bool release_locked(lock_mode held, lock_mode kept, held_by owner, ready_list& ready) noexcept;
    void fail_upgrade_of(const void* handle, ready_list& ready) noexcept;

    policy_atomic<Threading, word_type> word_{0};
    const lock_preference preference_;
    std::uint64_t arrivals_ = 0;
    // Writers wait in queue_.
    waiter_list reader_queue_;
    waiter_list upgradable_queue_; // waiters for an upgradable lock
    waiter_list upgrade_queue_;    // the upgrade that waits: at most one
};

extern template class shared_mutex_state<thread_safe>;
extern template class shared_mutex_state<strand_confined>;

// A wait for a Lock that holds `wanted`. The lock is made without the owner, which may be
// destroyed by then.
template <class Owner, class Lock, lock_mode wanted>
struct shared_mutex_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Lock;
    using waiter_type = shared_mutex_waiter;
    static constexpr request_traits traits{.refundable = true};

    Owner* owner;
    shared_mutex_state<threading>* state_ptr;

    const executor_type& executor() const noexcept { return owner->executor(); }
    shared_mutex_state<threading>& state() const noexcept { return *state_ptr; }

    TURNSTILE_HOT wait_decision try_now() const noexcept
    {
        check_strand();
        return state_ptr->try_acquire(lock_mode::nothing, wanted) ? wait_decision::granted()
                                                                  : wait_decision::pending();
    }
    void give_back() const noexcept { state_ptr->release(wanted); }
    void prepare(shared_mutex_waiter& w) const noexcept { w.wanted_mode = wanted; }
    Lock take_now() const noexcept { return lock_access::make<Lock>(owner, *state_ptr); }
    void check_strand() const noexcept { BOOST_ASSERT(&owner->state() == state_ptr); }
};

// A wait to exchange `lock`, which holds `held`, for an exclusive lock. It is not refundable: if
// its result is dropped, the held lock is released as well.
template <class Owner, class Lock, lock_mode held>
struct upgrade_request : shared_mutex_request<Owner, unique_lock<Owner>, lock_mode::exclusive> {
    using base = shared_mutex_request<Owner, unique_lock<Owner>, lock_mode::exclusive>;
    using waiter_type = upgrade_waiter;
    static constexpr request_traits traits{};

    upgrade_request(base exclusive, Lock& held_lock) noexcept : base(exclusive), lock(&held_lock) {}

    Lock* lock;

    wait_decision try_now() const noexcept
    {
        this->check_strand();
        if (lock_access::state_of(*lock) != this->state_ptr)
            return wait_decision::refused(errc::not_locked);
        return this->state().try_acquire(held, lock_mode::exclusive) ? wait_decision::granted()
                                                                     : wait_decision::pending();
    }
    void give_back() const noexcept { this->state().release(lock_mode::exclusive, held); }
    void prepare(upgrade_waiter& w) const noexcept
    {
        w.held_mode = held;
        w.wanted_mode = lock_mode::exclusive;
        w.handle = lock;
    }
    unique_lock<Owner> take_now() const noexcept
    {
        lock_access::disown(*lock);
        return base::take_now();
    }
};

} // namespace turnstile::inline v0_1::detail
