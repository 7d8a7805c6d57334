// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <boost/assert.hpp>

#include <cstdint>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// Where one permit is all that anybody waits for.
using single_permit = std::integral_constant<std::uint64_t, 1>;

// A wait for n permits of the owner's gate. The result is made without the owner, which may be
// gone by then: by Owner::adopt(), from the gate, which counts a handle for each result.
template <class Owner, class Result, class Count = std::uint64_t>
struct permit_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Result;
    using waiter_type = permit_waiter;
    using state_type = semaphore_state<threading>;
    static constexpr request_traits traits{.refundable = !std::is_void_v<Result>};
    static constexpr std::uint64_t how =
        traits.refundable ? state_type::as_handle : state_type::by_hand;

    Owner* owner;
    state_type* state_ptr;
    [[no_unique_address]] Count n;

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

    wait_decision try_now() const noexcept
    {
        BOOST_ASSERT(&owner->state() == state_ptr); // which looks at the strand
        return state_ptr->try_now(n, how);
    }
    void give_back() const noexcept { state_ptr->release(n, how); }
    void prepare(permit_waiter& w) const noexcept
    {
        if constexpr (!std::is_same_v<Count, single_permit>) // which is what a waiter needs anyhow
            w.need = n;
    }
    Result take_now() const noexcept
    {
        if constexpr (!std::is_void_v<Result>)
            return Owner::adopt(owner, *state_ptr, n);
    }
};

} // namespace turnstile::inline v0_1::detail
