// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <cstdint>

namespace turnstile::inline v0_1 {

/// Who goes first where readers and writers wait for the same `shared_mutex`.
enum class lock_preference : unsigned char {
    fair,           ///< Whoever came first.
    prefer_readers, ///< Readers, whether a writer waits or not: it may wait for ever.
    prefer_writers, ///< Writers, however long readers have waited: they may wait for ever.
};

template <>
inline constexpr auto detail::enum_names<lock_preference> =
    std::to_array<std::string_view>({"fair", "prefer_readers", "prefer_writers"});

namespace detail {

// The ways to hold a shared_mutex_state.
enum class lock_mode : unsigned char { nothing, shared, upgradable, exclusive };

// Waits to exchange what it has, usually nothing, for what it wants.
struct shared_waiter : waiter {
    using waiter::waiter;
    lock_mode has = lock_mode::nothing;
    lock_mode wants = lock_mode::shared;
    std::uint64_t ticket = 0; // its number in the order of arrival
};

// Waits to exchange the lock of a handle for the exclusive one.
struct upgrade_waiter : shared_waiter {
    using shared_waiter::shared_waiter;
    const void* handle = nullptr;
};

// Any number of readers, and beside them one who may upgrade; or one writer.
//
// One word holds all of that twice, and two flags. The lower half says what is held:
//
//    31       4          3          2        1           0
//   [ readers  | orphaned | upgrader | writer | contended ]
//
// and the upper half, with the same places, what of that is held by handles (unique_lock,
// shared_lock, upgrade_lock). What is held by hand, with try_lock() and its like, is the
// difference.
//
//   contended   Operations wait. The word then changes only under the lock, and every fast path
//               stands back. Otherwise it changes by compare-and-swap.
//   orphaned    The object was destroyed. Nothing is granted any more, and everything is returned
//               under the lock; the last handle drops the reference that the object has left.
//
// When half of the range for readers is used up, further readers wait.
template <class Threading>
class TURNSTILE_EXPORT shared_mutex_state final : public wait_state<Threading> {
    using word_type = std::uint64_t;

public:
    // How a call comes by what it takes, or has what it gives.
    enum class way : bool { by_hand, as_handle };

    template <class Executor>
    shared_mutex_state(const Executor& executor, lock_preference preference)
        : wait_state<Threading>(executor), preference_(preference)
    {
    }

    lock_preference preference() const noexcept { return preference_; }
    bool is_held(lock_mode how) const noexcept
    {
        return holds(word_.load(std::memory_order_acquire), how);
    }
    // Whether the object was destroyed.
    bool is_orphaned() const noexcept { return word_.load(std::memory_order_acquire) & orphaned; }

    // Takes what it wants for what it has, if that needs no waiting.
    TURNSTILE_HOT bool try_take(lock_mode has, lock_mode wants, way how = way::as_handle) noexcept
    {
        return word_.update(quick_exchange{has, wants, how}, std::memory_order_acquire) ||
               (overlooks_waiters(has, wants) && try_contended(wants, how));
    }

    // Gives what it has for something less; false, and no change, if nobody holds that. An upgrade
    // that waits with the lock of `handle` fails.
    TURNSTILE_HOT bool give(lock_mode has, lock_mode keeps = lock_mode::nothing,
                            way how = way::as_handle, const void* handle = nullptr) noexcept
    {
        return word_.update(quick_exchange{has, keeps, how}, std::memory_order_release) ||
               give_contended(has, keeps, how, handle);
    }

    // Makes what is held by hand a handle's; false, and no change, if nobody holds that by hand.
    bool adopt(lock_mode what) noexcept;
    // The reverse, for what `handle` holds.
    void detach(lock_mode what, const void* handle) noexcept;

private:
    static constexpr word_type contended = 1;
    static constexpr word_type writer = 2;
    static constexpr word_type upgrader = 4;
    static constexpr word_type orphaned = 8;
    static constexpr word_type reader = 16;
    static constexpr word_type all_readers = 0xffff'fff0;
    static constexpr word_type many_readers = 0x8000'0000;
    static constexpr word_type all_held = all_readers | upgrader | writer;
    static constexpr int handles_place = 32;

    static constexpr word_type part(lock_mode h) noexcept
    {
        switch (h) {
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
    static constexpr word_type part(lock_mode h, way how) noexcept
    {
        return how == way::by_hand ? part(h) : part(h) | part(h) << handles_place;
    }
    static constexpr word_type with(word_type word, lock_mode h, way how = way::as_handle) noexcept
    {
        return word + part(h, how);
    }
    static constexpr word_type without(word_type word, lock_mode h,
                                       way how = way::as_handle) noexcept
    {
        return word - part(h, how);
    }
    // The lower half, of which constants are cheaper to test.
    static constexpr std::uint32_t low(word_type word) noexcept
    {
        return static_cast<std::uint32_t>(word);
    }
    TURNSTILE_HOT static constexpr bool holds(word_type word, lock_mode h) noexcept
    {
        const word_type place = h == lock_mode::shared ? all_readers : part(h);
        return h == lock_mode::nothing || (low(word) & low(place)) != 0;
    }
    TURNSTILE_HOT static constexpr bool holds(word_type word, lock_mode h, way how) noexcept
    {
        // The readers are at the top of both halves, and nobody is a handle's in one of them only.
        if (h == lock_mode::shared && how == way::as_handle)
            return word >= part(h, how);
        const word_type handles = word >> handles_place;
        return holds(how == way::as_handle ? handles : (word & all_held) - handles, h);
    }
    TURNSTILE_HOT static constexpr bool is_free_for(word_type held, lock_mode wanted) noexcept
    {
        switch (wanted) {
        case lock_mode::nothing:
            return true;
        case lock_mode::shared:
            return (low(held) & low(writer | many_readers)) == 0;
        case lock_mode::upgradable:
            return (low(held) & low(writer | upgrader)) == 0;
        default:
            return (low(held) & low(all_held)) == 0;
        }
    }

    // What is done to the word without the lock, if nobody waits. A struct, since what a lambda has
    // captured is not inlined.
    struct quick_exchange {
        lock_mode has;
        lock_mode wants;
        way how;

        // A handle has what it gives, unless its upgrade was granted and has not completed: then
        // there is a writer.
        TURNSTILE_HOT constexpr word_type taken_over() const noexcept
        {
            const bool can_be_upgraded = has == lock_mode::shared || has == lock_mode::upgradable;
            return can_be_upgraded && how == way::as_handle ? writer : 0;
        }

        TURNSTILE_HOT bool operator()(word_type& word) const noexcept
        {
            if ((low(word) & low(contended | orphaned | taken_over())) != 0 ||
                (how == way::by_hand && !holds(word, has, how)) ||
                !is_free_for(without(word, has, how), wants))
                return false;
            word = with(without(word, has, how), wants, how);
            return true;
        }
    };

    bool overlooks_waiters(lock_mode has, lock_mode wants) const noexcept
    {
        return preference_ == lock_preference::prefer_readers && has == lock_mode::nothing &&
               wants != lock_mode::exclusive;
    }

    bool try_contended(lock_mode wants, way how) noexcept;
    bool give_contended(lock_mode has, lock_mode keeps, way how, const void* handle) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override { take_back(w, ready); }
    bool keep_for_handles() noexcept override;
    void take_all(waiter_list& out) noexcept override;

    word_type contend() noexcept;
    waiter_list& line_of(const shared_waiter& w) noexcept;
    bool has_queued() const noexcept;
    shared_waiter* next(word_type held) noexcept;
    template <class Decided>
    void serve_with(word_type held, Decided decided) noexcept;
    void serve(word_type held, ready_list& ready) noexcept;
    bool give_locked(lock_mode has, lock_mode keeps, way how, ready_list& ready) noexcept;
    void fail_upgrade_of(const void* handle, ready_list& ready) noexcept;

    policy_atomic<Threading, word_type> word_{0};
    const lock_preference preference_;
    std::uint64_t arrivals_ = 0;
    waiter_list readers_;
    waiter_list upgraders_; // who wait for an upgradable lock
    waiter_list upgrade_;   // who waits to upgrade: one at most
    // Writers are in queue_.
};

extern template class shared_mutex_state<thread_safe>;
extern template class shared_mutex_state<strand_confined>;

} // namespace detail
} // namespace turnstile::inline v0_1
