// SPDX-License-Identifier: BSL-1.0
// The state of latch: an event_state whose flag is set when a count has reached zero, and is never
// cleared. The count changes by compare-and-swap, and the arrival that makes it zero sets the flag.
#pragma once

#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/sync/detail/event_state.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct latch_waiter : waiter {
    using waiter::waiter;
    std::uint64_t arrivals = 0; // to count when the operation starts
};

template <class Threading>
class TURNSTILE_EXPORT latch_state final : public event_state<Threading> {
public:
    template <class Executor>
    latch_state(const Executor& executor, std::uint64_t count)
        : event_state<Threading>(executor, count == 0), count_(count)
    {
    }

    std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }

    wait_decision try_wait() const noexcept
    {
        return this->is_set() ? wait_decision::granted() : wait_decision::pending();
    }

    // Refused, and nothing is changed, if n is greater than the count.
    wait_decision count_down(std::uint64_t n) noexcept;

    // Counts down only if that opens the latch; pending otherwise.
    wait_decision try_arrive(std::uint64_t n) noexcept;

    // Counts the waiter's arrivals, then starts its wait.
    void start(waiter& w) noexcept override;

private:
    policy_atomic<Threading, std::uint64_t> count_;
};

extern template class latch_state<thread_safe>;
extern template class latch_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
