// SPDX-License-Identifier: BSL-1.0
// The state of barrier: the parties that have arrived, until their round is complete. A complete
// round ends: it moves from `queue_` to `ended_round_`, the action runs without the lock, and
// the round is granted. Arrivals meanwhile belong to the next round.
//
// An arrival is counted under the lock, in the step that queues it, so exactly one arrival
// completes a round. At most one round has ended and is not granted. `parties_`, `arrived_` and
// `broken_` are written under the lock and read without it.
#pragma once

#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct barrier_waiter : waiter {
    using waiter::waiter;
    std::uint64_t arrival = 0;       // its number in the order of arrival
    std::size_t index = 0;           // its index in the round, once it is granted
    bool* completes_round = nullptr; // set to true if this arrival completes the round
};

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
    // Hides that of wait_state, which also counts an ended round.
    std::size_t waiting() const noexcept { return arrived_.load(std::memory_order_acquire); }
    bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
    std::exception_ptr failure() noexcept;

    // Arrives only if that completes the round, which is granted; `index` is that of the arrival.
    wait_decision try_arrive(std::size_t& index) noexcept
    {
        constexpr auto relaxed = std::memory_order_relaxed;
        if (arrived_.load(relaxed) + 1 < parties_.load(relaxed) && !broken_.load(relaxed))
            [[likely]]
            return wait_decision::pending();
        return try_arrive_last(index);
    }

    // Counts the arrival of w, and starts its wait.
    void start(waiter& w) noexcept override;

    // n parties arrive for the last time. Refused if fewer are missing in this round.
    wait_decision arrive_and_drop(std::size_t n) noexcept;

    // Fails every waiter, and repairs the barrier.
    void reset() noexcept;
    // Fails every waiter, and every later arrival.
    void abort() noexcept;

private:
    // Under the lock: whether the round can end. If all parties have dropped out, the round
    // of the last drop is complete without a waiter.
    bool is_round_complete() const noexcept;
    wait_decision try_arrive_last(std::size_t& index) noexcept;
    void end_round() noexcept;
    std::size_t grant_round(ready_list& ready) noexcept;
    std::exception_ptr run_action() noexcept;
    wait_decision finish_round(std::size_t& index) noexcept;
    wait_decision refusal() const noexcept;
    void fail(waiter_list& waiters, ready_list& ready) noexcept;
    void fail_all(ready_list& ready) noexcept;
    void fail_ended_round(wait_decision decision) noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;

    policy_atomic<Threading, std::size_t> parties_;
    policy_atomic<Threading, std::size_t> arrived_{0}; // the size of queue_
    policy_atomic<Threading, bool> broken_{false};

    const std::function<void()> action_;
    const bool cancelling_breaks_;
    bool has_ended_round_ = false; // a round has ended and is not yet granted
    bool all_dropped_ = false;     // the last round is complete and has not ended yet
    wait_decision round_decision_ = wait_decision::granted(); // of the ended round
    std::uint64_t arrivals_ = 0;
    std::uint64_t last_ended_arrival_ = 0; // arrivals up to this one are in an ended round
    waiter_list ended_round_;
    std::exception_ptr failure_;
};

extern template class barrier_state<thread_safe>;
extern template class barrier_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
