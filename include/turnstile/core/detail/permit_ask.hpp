#pragma once

#include <turnstile/core/detail/permit_gate.hpp>
#include <turnstile/core/detail/start_wait.hpp>

#include <cstdint>
#include <type_traits>

namespace turnstile::detail {

// Where one permit is all that anybody waits for.
using single_permit = std::integral_constant<std::uint64_t, 1>;

// A wait for n permits of a gate; the owner turns them into the result with adopt(n).
template <class Owner, class Result, class Count = std::uint64_t>
struct permit_ask {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Result;
    using waiter_type = permit_waiter;
    static constexpr bool refundable = !std::is_void_v<Result>;

    Owner* owner;
    [[no_unique_address]] Count n;

    const executor_type& executor() const noexcept { return owner->executor(); }
    permit_gate<threading>& state() const noexcept { return owner->state(); }

    verdict try_now() const noexcept { return state().try_now(n); }
    void give_back() const noexcept { state().release(n); }
    void prepare(permit_waiter& w) const noexcept
    {
        if constexpr (!std::is_same_v<Count, single_permit>) // which is what a waiter needs anyhow
            w.need = n;
    }
    Result take_now() const noexcept
    {
        if constexpr (!std::is_void_v<Result>)
            return owner->adopt(n);
    }
};

} // namespace turnstile::detail
