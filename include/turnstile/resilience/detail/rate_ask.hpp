#pragma once

#include <turnstile/core/detail/start_wait.hpp>
#include <turnstile/resilience/detail/rate_gate.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace turnstile::detail {

template <class Rep, class Period>
constexpr nanoseconds at_least_zero(std::chrono::duration<Rep, Period> d) noexcept
{
    return std::max(saturating_nanoseconds(d), nanoseconds::zero());
}

// A wait for n permits. They are not refundable by dropping anything, so the stamp of the
// first look comes along, for a cancellation on the way.
template <class Owner>
struct rate_ask {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using state_type = rate_gate<threading, typename Owner::clock_type>;
    using result_type = void;
    using waiter_type = rate_waiter;
    static constexpr bool refundable = false;

    Owner* owner;
    std::uint64_t n;
    nanoseconds within;
    rate_stamp stamp{};
    nanoseconds retry_after = nanoseconds::max(); // if try_now() refuses

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return owner->state(); }

    verdict try_now() noexcept { return state().try_now(n, within, stamp, retry_after); }
    void give_back() const noexcept { state().give_back(n, stamp); }
    rejection refusal(errc code) const { return rejection(code, retry_after); }
    void prepare(rate_waiter& w) const noexcept
    {
        w.need = n;
        w.stamp = stamp;
        if (within != nanoseconds::max())
            w.deadline = saturating_add(state_type::now(), within);
    }
};

} // namespace turnstile::detail
