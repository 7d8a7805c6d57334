// SPDX-License-Identifier: BSL-1.0
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

// What the waits of both rate limiters have in common. Permits are not refunded by dropping a
// result, so the stamp of the first look comes along, for a cancellation on the way.
struct rate_need {
    using result_type = void;
    static constexpr request_traits traits{.explains_refusal = true, .reports_retry_after = true};

    std::uint64_t n;
    nanoseconds within;
    nanoseconds deadline = nanoseconds::max();
    rate_stamp stamp{};
    nanoseconds retry_after = nanoseconds::max(); // if the request is refused

    rejection refusal(errc code) const { return rejection(code, retry_after); }
    void set_deadline(nanoseconds now) noexcept
    {
        if (within != nanoseconds::max())
            deadline = saturating_add(now, within);
    }
    void prepare(rate_waiter& w) const noexcept
    {
        w.need = n;
        w.deadline = deadline;
        w.stamp = stamp;
        w.retry_after = retry_after;
    }
};

// A wait for n permits of a rate limiter.
template <class Owner>
struct rate_limiter_request : rate_need {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = rate_limiter_state<threading, typename Owner::clock_type>;
    using waiter_type = rate_waiter;

    rate_limiter_request(Owner& o, std::uint64_t permits, nanoseconds longest) noexcept
        : rate_need{permits, longest}, owner(&o)
    {
    }

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return owner->state(); }

    wait_decision try_now() noexcept
    {
        const nanoseconds now = state_type::now();
        set_deadline(now);
        return state().try_now(n, now, deadline, stamp, retry_after);
    }
    void give_back() const noexcept { state().give_back(n, stamp); }

    Owner* owner;
};

} // namespace turnstile::inline v0_1::detail
