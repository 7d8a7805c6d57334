// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct barrier_waiter : waiter {
    using waiter::waiter;
    std::uint64_t ticket = 0; // the number of its arrival
    std::size_t index = 0;    // in its round, once it is granted
    bool* is_last = nullptr;  // told so if this arrival completes the round
};

// Those who have arrived, until enough have: then they are closed off as a round, the action
// runs without the lock, and they go. Whoever arrives meanwhile belongs to the next round.
//
// An arrival is counted under the lock, in the same moment in which it is queued. So of two
// last arrivals one is the last.
template <class Threading>
class TURNSTILE_EXPORT barrier_state final : public wait_state<Threading> {
public:
    template <class Executor>
    barrier_state(const Executor& executor, std::size_t parties, std::function<void()> action,
                  bool cancelling_breaks)
        : wait_state<Threading>(executor), parties_(parties), action_(std::move(action)),
          cancelling_breaks_(cancelling_breaks)
    {
    }

    std::size_t parties() const noexcept { return parties_.load(std::memory_order_acquire); }
    std::size_t waiting() const noexcept { return arrived_.load(std::memory_order_acquire); }
    bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
    std::exception_ptr failure() noexcept;

    // Arrives only if that completes the round, whose other members go; says which it is.
    wait_decision try_arrive(std::size_t& index) noexcept
    {
        constexpr auto relaxed = std::memory_order_relaxed;
        if (arrived_.load(relaxed) + 1 < parties_.load(relaxed) && !broken_.load(relaxed))
            [[likely]]
            return wait_decision::pending();
        return try_arrive_last(index);
    }

    // Takes over an operation, whose arrival counts from here on.
    void start(waiter& w) noexcept override;

    // n parties arrive for the last time; refused if there are not so many left to arrive.
    wait_decision arrive_and_drop(std::size_t n) noexcept;

    // Fails all who wait; the barrier is as new.
    void reset() noexcept;
    // Fails all who wait, and all who come.
    void abort() noexcept;

private:
    // Under the lock: whether everybody is there, so that the round can be closed. And if
    // everybody has left for good, that was the last round.
    bool is_complete() const noexcept;
    wait_decision try_arrive_last(std::size_t& index) noexcept;
    void close_round() noexcept;
    std::size_t release_round(ready_list& ready) noexcept;
    std::exception_ptr run_action() noexcept;
    wait_decision finish_round(std::size_t& index) noexcept;
    wait_decision refusal() const noexcept;
    void fail(waiter_list& waiters, ready_list& ready) noexcept;
    void fail_everybody(ready_list& ready) noexcept;
    void spoil_round(wait_decision why) noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;

    // Written under the lock, and looked at without it.
    policy_atomic<Threading, std::size_t> parties_;
    policy_atomic<Threading, std::size_t> arrived_{0}; // those in queue_
    policy_atomic<Threading, bool> broken_{false};

    const std::function<void()> action_;
    const bool cancelling_breaks_;
    bool acting_ = false;      // a round is closed, and not yet released
    bool all_dropped_ = false; // the last round is complete, and not yet closed
    wait_decision round_ = wait_decision::granted(); // what becomes of the closed round
    std::uint64_t tickets_ = 0;
    std::uint64_t last_closed_ = 0; // tickets up to this one are in a closed round
    waiter_list leaving_;           // the closed round
    std::exception_ptr failure_;
};

extern template class barrier_state<thread_safe>;
extern template class barrier_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
