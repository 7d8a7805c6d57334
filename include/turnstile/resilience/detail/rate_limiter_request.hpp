// SPDX-License-Identifier: BSL-1.0
// The wait requests of both rate limiters. Dropping the result of such a wait does not refund its
// permits, so the request keeps the receipt of permits that were taken before an operation existed;
// a cancellation before the completion gives them back.
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/detail/rate_limiter_state.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

template <class Rep, class Period>
constexpr nanoseconds at_least_zero(std::chrono::duration<Rep, Period> d) noexcept
{
    return std::max(saturating_nanoseconds(d), nanoseconds::zero());
}

struct rate_limiter_request_base {
    using result_type = void;
    static constexpr request_traits traits{.explains_refusal = true, .reports_retry_after = true};

    std::uint64_t permits;
    nanoseconds within;
    nanoseconds deadline = nanoseconds::max();
    rate_limiter_receipt receipt{};
    nanoseconds retry_after = nanoseconds::max(); // if the request is refused

    rejection refusal(errc code) const { return rejection(code, retry_after); }
    void set_deadline(nanoseconds now) noexcept
    {
        if (within != nanoseconds::max())
            deadline = saturating_add(now, within);
    }
    void prepare(rate_limiter_waiter& w) const noexcept
    {
        w.permits = permits;
        w.deadline = deadline;
        w.receipt = receipt;
        w.retry_after = retry_after;
    }
};

// A wait for permits of a rate limiter.
template <class Owner>
struct rate_limiter_request : rate_limiter_request_base {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = rate_limiter_state<threading, typename Owner::clock_type>;
    using waiter_type = rate_limiter_waiter;

    rate_limiter_request(Owner& o, std::uint64_t n, nanoseconds longest) noexcept
        : rate_limiter_request_base{n, longest}, owner(&o)
    {
    }

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return owner->state(); }

    wait_decision try_now() noexcept
    {
        const nanoseconds now = state_type::now();
        set_deadline(now);
        return state().try_now(permits, now, deadline, receipt, retry_after);
    }
    void give_back() const noexcept { state().give_back(permits, receipt); }

    Owner* owner;
};

} // namespace turnstile::inline v0_1::detail
