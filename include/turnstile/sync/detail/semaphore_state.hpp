// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1::detail {

struct permit_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
};

// Permits, and a FIFO of those who wait for some: what mutex, semaphore, bulkhead and
// auto_reset_event are made of.
//
// One word holds the permits that are available, the number of handles (locks, permits) that are
// out, and four flags:
//
//    63          26          4          3         2        1           0
//   [ permits     | handles  | orphaned | resized | closed | contended ]
//
//   contended   Operations wait, or permits are withheld. The word then changes only under the
//               lock, and every fast path stands back, so that no operation overtakes a waiter.
//               Otherwise the word changes by compare-and-swap.
//   closed      Nothing is granted any more.
//   resized     Permits are returned under the lock: outside of it the remaining room is unknown,
//               because the maximum may change.
//   orphaned    The object was destroyed. Nothing is granted any more, and everything is returned
//               under the lock; the last handle drops the reference that the object has left.
//
// A handle is counted when it is granted and until it is returned or detached. Permits that are
// taken or returned without a handle (semaphore::release, mutex::try_lock) leave that number alone.
// From half of its range on handles are counted on slower paths; at the end of its range the
// number stays where it is, and a state that is orphaned then is never freed.
template <class Threading>
class TURNSTILE_EXPORT semaphore_state : public wait_state<Threading> {
public:
    // Whether those who wait are given a handle, or just what they wait for.
    enum class grants : bool { nothing, handles };
    // How a call comes by permits, or returns them.
    static constexpr std::uint64_t by_hand = 0;
    static constexpr std::uint64_t as_handle = 16;

    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max() >> 26;

    template <class Executor>
    semaphore_state(const Executor& executor, std::uint64_t permits, std::uint64_t maximum,
                    grants what = grants::handles)
        : wait_state<Threading>(executor), word_(permits * one), maximum_(maximum),
          granted_as_(what == grants::handles ? as_handle : by_hand)
    {
    }

    std::uint64_t available() const noexcept { return word_.load(std::memory_order_acquire) / one; }
    std::uint64_t maximum() const noexcept { return maximum_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return word_.load(std::memory_order_acquire) & closed; }
    // Whether the object was destroyed.
    bool is_orphaned() const noexcept { return word_.load(std::memory_order_acquire) & orphaned; }

    // Takes n permits; `how` is by_hand or as_handle.
    TURNSTILE_HOT bool try_acquire(std::uint64_t n, std::uint64_t how) noexcept
    {
        const auto take = [n, how](std::uint64_t& word) noexcept {
            if ((word & (contended | closed | orphaned | many_handles)) != 0 || word / one < n)
                return false;
            word -= n * one - how;
            return true;
        };
        return word_.update(take, std::memory_order_acquire) ||
               (has_many_handles() && try_acquire_among_many(n, how));
    }

    // The fast path of a wait for n permits.
    TURNSTILE_HOT wait_decision try_now(std::uint64_t n, std::uint64_t how) noexcept
    {
        if (n != 0 && try_acquire(n, how)) [[likely]]
            return wait_decision::granted();
        return explain(n);
    }

    // Returns n permits; false if that would exceed the maximum: then only the handle is returned.
    // Either way the word is written, so that whoever acquires next sees what the caller did
    // before.
    TURNSTILE_HOT bool release(std::uint64_t n, std::uint64_t how) noexcept
    {
        bool fits = false;
        return release_quickly(n, how, fits) ? fits : release_contended(n, how);
    }

    // For a gate of one permit, which is a mutex. Unlocks it for a handle, which cannot fail.
    TURNSTILE_HOT void unlock() noexcept
    {
        const auto put = [](std::uint64_t& word) noexcept {
            if (word & (flags | many_handles))
                return false;
            word += one - as_handle;
            return true;
        };
        if (!word_.update(put, std::memory_order_release))
            release_contended(1, as_handle);
    }
    // The same for a lock that was taken without a handle; false, and no change, if there is none:
    // a handle's lock is not affected.
    bool unlock_by_hand() noexcept;
    // Counts a handle for such a lock; false, and no change, if there is none.
    bool adopt_lock() noexcept;

    // Counts a handle for permits that were taken without one, and one less for permits that stay
    // out without it.
    void add_handle() noexcept { change_handles(as_handle); }
    void drop_handle() noexcept { change_handles(std::uint64_t(0) - as_handle); }

    // Changes the maximum, and what is available by as much; permits that are out beyond the
    // new maximum are withheld as they come back. Waiters who now ask for too much are told.
    void resize(std::uint64_t maximum) noexcept;

    // Fails every waiter, and every later acquisition, with errc::closed.
    void close() noexcept;

protected:
    // For those who add to it (bulkhead). The fast path of release(): false, and nothing is
    // done, if it takes the lock.
    TURNSTILE_HOT bool release_quickly(std::uint64_t n, std::uint64_t how, bool& fits) noexcept
    {
        const auto put = [&](std::uint64_t& word) noexcept {
            if (word & (contended | resized | orphaned | many_handles))
                return false;
            fits = n <= maximum_.load(std::memory_order_relaxed) - word / one;
            word += (fits ? n * one : 0) - how;
            return true;
        };
        return word_.update(put, std::memory_order_acq_rel);
    }
    // All else under the lock.
    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override;
    bool keep_for_handles() noexcept override;
    bool put(std::uint64_t n, std::uint64_t how, ready_list& ready) noexcept;
    void set_maximum(std::uint64_t maximum, ready_list& ready) noexcept;
    std::uint64_t in_use() const noexcept { return maximum() + withheld_ - available(); }

private:
    static constexpr std::uint64_t contended = 1;
    static constexpr std::uint64_t closed = 2;
    static constexpr std::uint64_t resized = 4;
    static constexpr std::uint64_t orphaned = 8;
    static constexpr std::uint64_t flags = 15;
    static constexpr std::uint64_t one = std::uint64_t(1) << 26;
    static constexpr std::uint64_t all_handles = one - 1 - flags;
    static constexpr std::uint64_t many_handles = one / 2;

    // What becomes of the word's handles when `change` handles are added, or subtracted.
    static constexpr std::uint64_t with_handles(std::uint64_t word, std::uint64_t change) noexcept
    {
        return (word & all_handles) == all_handles ? word : word + change;
    }
    bool has_many_handles() const noexcept
    {
        return word_.load(std::memory_order_relaxed) & many_handles;
    }
    TURNSTILE_COLD bool try_acquire_among_many(std::uint64_t n, std::uint64_t how) noexcept;
    void change_handles(std::uint64_t change) noexcept;

    bool release_contended(std::uint64_t n, std::uint64_t how) noexcept;
    TURNSTILE_COLD bool release_crowded(std::uint64_t n, std::uint64_t how) noexcept;
    // Under the lock, of a mutex: whether it was locked without a handle.
    static constexpr bool is_locked_by_hand(std::uint64_t word) noexcept
    {
        return word < one && (word & all_handles) == 0;
    }
    // Why n permits were not to be had at once.
    TURNSTILE_HOT wait_decision explain(std::uint64_t n) const noexcept
    {
        if (n == 0)
            return wait_decision::refused(errc::invalid_argument);
        if (is_closed())
            return wait_decision::refused(errc::closed);
        return n > maximum() ? wait_decision::refused(errc::too_large) : wait_decision::pending();
    }

    std::uint64_t set_flags(std::uint64_t flags) noexcept;
    waiter* hand_over(std::uint64_t n, std::uint64_t how) noexcept;
    // Grants in order as many as there are permits for, each through grant(waiter&).
    template <class Grant>
    void serve_with(Grant grant) noexcept;
    void serve(ready_list& ready) noexcept;
    void serve_newcomer() noexcept;
    permit_waiter& head() noexcept { return static_cast<permit_waiter&>(this->queue_.front()); }

    policy_atomic<Threading, std::uint64_t> word_;
    policy_atomic<Threading, std::uint64_t> maximum_;
    const std::uint64_t granted_as_; // to those who wait
    std::uint64_t withheld_ = 0;     // by resize(), from what comes back; guarded by the lock
};

extern template class semaphore_state<thread_safe>;
extern template class semaphore_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
