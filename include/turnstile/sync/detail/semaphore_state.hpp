// SPDX-License-Identifier: BSL-1.0
// The state of mutex, semaphore and auto_reset_event, and the base of the bulkhead's: permits, and
// a FIFO of operations that wait for them. A mutex is a semaphore with one permit.
//
// One word holds the available permits, the number of handles (locks, permits) that exist, and
// four flags:
//
//    63          26          4          3         2        1           0
//   [ permits     | handles  | orphaned | resized | closed | contended ]
//
//   contended   Operations wait, or permits are withheld. The word then changes only under the
//               lock, and every fast path fails, so that no operation overtakes a waiter.
//               While it is clear, the word changes by compare-and-swap.
//   closed      No permit is granted.
//   resized     Permits are released under the lock: outside the lock the remaining room is
//               unknown, because the maximum may change.
//   orphaned    The object was destroyed. No permit is granted, and every permit is released under
//               the lock. Releasing the last handle drops the reference that the object has left
//               to the handles.
//
// Invariant: the first waiter needs more permits than are available.
//
// A handle is counted from its grant until it is released or detached. Permits that are acquired
// or released without a handle (semaphore::release, mutex::try_lock) do not change the number of
// handles. In the upper half of its range that number changes on slower paths only. At the end of
// its range it stays where it is, and a state that is orphaned then is never freed.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/assert.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

struct semaphore_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
};

template <class Threading>
class TURNSTILE_EXPORT semaphore_state : public wait_state<Threading> {
public:
    // The handles that come with an acquisition or go with a release, as an amount of the word.
    static constexpr std::uint64_t no_handle = 0;
    static constexpr std::uint64_t one_handle = 16;

    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max() >> 26;

    // `handle_of_grant` is one_handle if every grant comes with a handle, else no_handle.
    template <class Executor>
    semaphore_state(const Executor& executor, std::uint64_t permits, std::uint64_t maximum,
                    std::uint64_t handle_of_grant = one_handle)
        : wait_state<Threading>(executor), word_(permits * one_permit), maximum_(maximum),
          handle_of_grant_(handle_of_grant)
    {
    }

    std::uint64_t available() const noexcept
    {
        return word_.load(std::memory_order_acquire) / one_permit;
    }
    std::uint64_t maximum() const noexcept { return maximum_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return word_.load(std::memory_order_acquire) & closed; }
    bool is_orphaned() const noexcept { return word_.load(std::memory_order_acquire) & orphaned; }

    // Acquires n permits if that needs no waiting; `handle` is no_handle or one_handle.
    TURNSTILE_HOT bool try_acquire(std::uint64_t n, std::uint64_t handle) noexcept
    {
        const auto acquire = [n, handle](std::uint64_t& word) noexcept {
            if ((word & (contended | closed | orphaned | many_handles)) != 0 ||
                word / one_permit < n)
                return false;
            word -= n * one_permit - handle;
            return true;
        };
        return word_.update(acquire, std::memory_order_acquire) ||
               (has_many_handles() && try_acquire_with_many_handles(n, handle));
    }

    // The fast path of a wait for n permits.
    TURNSTILE_HOT wait_decision try_now(std::uint64_t n, std::uint64_t handle) noexcept
    {
        if (n != 0 && try_acquire(n, handle)) [[likely]]
            return wait_decision::granted();
        return refusal(n);
    }

    // Releases n permits. Returns false if that would exceed the maximum: then only the handle is
    // returned. Either way the word is written, so that the next acquisition happens after this
    // call.
    TURNSTILE_HOT bool release(std::uint64_t n, std::uint64_t handle) noexcept
    {
        bool fits = false;
        return release_quickly(n, handle, fits) ? fits : release_contended(n, handle);
    }

    // The functions of a mutex. Releases the lock of a handle, which cannot fail.
    TURNSTILE_HOT void unlock() noexcept
    {
        const auto unlock_uncontended = [](std::uint64_t& word) noexcept {
            if (word & (flags | many_handles))
                return false;
            word += one_permit - one_handle;
            return true;
        };
        if (!word_.update(unlock_uncontended, std::memory_order_release))
            release_contended(1, one_handle);
    }
    // Releases a lock that was acquired without a handle. Returns false, and changes nothing, if
    // there is none: a handle's lock is not released.
    bool unlock_without_handle() noexcept;
    // Counts a handle for a lock that was acquired without one. Returns false, and changes
    // nothing, if there is none.
    bool adopt_lock() noexcept;

    // Counts a handle for permits that were acquired without one.
    void add_handle() noexcept { change_handles(one_handle); }
    // Counts one handle less; its permits stay acquired.
    void drop_handle() noexcept { change_handles(std::uint64_t(0) - one_handle); }

    // Changes the maximum, and the available permits by the same amount. Acquired permits beyond
    // the new maximum are withheld when they are released. Waiters that need more than the new
    // maximum fail.
    void resize(std::uint64_t maximum) noexcept;

    // Fails every waiter, and every later acquisition, with errc::closed.
    void close() noexcept;

protected:
    // The fast path of release(), also for derived states: returns false, and does nothing, if the
    // release needs the lock.
    TURNSTILE_HOT bool release_quickly(std::uint64_t n, std::uint64_t handle, bool& fits) noexcept
    {
        const auto release_uncontended = [&](std::uint64_t& word) noexcept {
            if (word & (contended | resized | orphaned | many_handles))
                return false;
            fits = n <= maximum_.load(std::memory_order_relaxed) - word / one_permit;
            word += (fits ? n * one_permit : 0) - handle;
            return true;
        };
        return word_.update(release_uncontended, std::memory_order_acq_rel);
    }

    // The rest of this section is called under the lock.
    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override;
    bool keep_for_handles() noexcept override;
    bool release_locked(std::uint64_t n, std::uint64_t handle, ready_list& ready) noexcept;
    void set_maximum(std::uint64_t maximum, ready_list& ready) noexcept;
    std::uint64_t in_use() const noexcept { return maximum() + withheld_ - available(); }

private:
    static constexpr std::uint64_t contended = 1;
    static constexpr std::uint64_t closed = 2;
    static constexpr std::uint64_t resized = 4;
    static constexpr std::uint64_t orphaned = 8;
    static constexpr std::uint64_t flags = 15;
    static constexpr std::uint64_t one_permit = std::uint64_t(1) << 26;
    static constexpr std::uint64_t all_handles = one_permit - 1 - flags;
    static constexpr std::uint64_t many_handles = one_permit / 2;

    // The word after its number of handles has changed by `change`.
    static constexpr std::uint64_t with_handles(std::uint64_t word, std::uint64_t change) noexcept
    {
        return (word & all_handles) == all_handles ? word : word + change;
    }
    bool has_many_handles() const noexcept
    {
        return word_.load(std::memory_order_relaxed) & many_handles;
    }
    TURNSTILE_COLD bool try_acquire_with_many_handles(std::uint64_t n,
                                                      std::uint64_t handle) noexcept;
    void change_handles(std::uint64_t change) noexcept;

    bool release_contended(std::uint64_t n, std::uint64_t handle) noexcept;
    TURNSTILE_COLD bool release_to_queue(std::uint64_t n, std::uint64_t handle) noexcept;
    static constexpr bool is_locked_without_handle(std::uint64_t word) noexcept
    {
        return word < one_permit && (word & all_handles) == 0;
    }
    // Refused if no waiting can lead to n permits, else pending.
    TURNSTILE_HOT wait_decision refusal(std::uint64_t n) const noexcept
    {
        if (n == 0)
            return wait_decision::refused(errc::invalid_argument);
        if (is_closed())
            return wait_decision::refused(errc::closed);
        return n > maximum() ? wait_decision::refused(errc::too_large) : wait_decision::pending();
    }

    std::uint64_t set_flags(std::uint64_t flags) noexcept;
    waiter* hand_over(std::uint64_t n, std::uint64_t handle) noexcept;
    // Calls grant(waiter&), in order, for each waiter for which there are permits.
    template <class Grant>
    void serve_with(Grant grant) noexcept;
    void serve(ready_list& ready) noexcept;
    void serve_newcomer() noexcept;
    semaphore_waiter& head() noexcept
    {
        return static_cast<semaphore_waiter&>(this->queue_.front());
    }

    policy_atomic<Threading, std::uint64_t> word_;
    policy_atomic<Threading, std::uint64_t> maximum_;
    const std::uint64_t handle_of_grant_;
    std::uint64_t withheld_ = 0; // permits to keep when they are released; guarded by the lock
};

extern template class semaphore_state<thread_safe>;
extern template class semaphore_state<strand_confined>;

// The number of permits in a request of an object whose operations need just one.
using single_permit = std::integral_constant<std::uint64_t, 1>;

// A wait for n permits of an Owner whose state is a semaphore_state. Owner::adopt() makes the
// Result from the state, which has counted a handle for it; the owner may be destroyed by then.
template <class Owner, class Result, class Count = std::uint64_t>
struct semaphore_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Result;
    using waiter_type = semaphore_waiter;
    using state_type = semaphore_state<threading>;
    static constexpr request_traits traits{.refundable = !std::is_void_v<Result>};
    static constexpr std::uint64_t handle =
        traits.refundable ? state_type::one_handle : state_type::no_handle;

    Owner* owner;
    state_type* state_ptr;
    [[no_unique_address]] Count n;

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

    wait_decision try_now() const noexcept
    {
        BOOST_ASSERT(&owner->state() == state_ptr); // owner->state() checks the strand
        return state_ptr->try_now(n, handle);
    }
    void give_back() const noexcept { state_ptr->release(n, handle); }
    void prepare(semaphore_waiter& w) const noexcept
    {
        if constexpr (!std::is_same_v<Count, single_permit>) // the default of a waiter
            w.need = n;
    }
    Result take_now() const noexcept
    {
        if constexpr (!std::is_void_v<Result>)
            return Owner::adopt(owner, *state_ptr, n);
    }
};

} // namespace turnstile::inline v0_1::detail
