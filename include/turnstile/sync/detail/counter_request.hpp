// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/counter_state.hpp>

#include <cstdint>

namespace turnstile::inline v0_1::detail {

template <class Predicate>
struct predicate_goal {
    Predicate predicate;

    operator count_goal() const noexcept
    {
        return {count_goal::kind::predicate, 0, &predicate, &predicate_goal::request};
    }

    static wait_decision request(const void* self, std::int64_t value) noexcept
    {
        try {
            const bool holds = (*static_cast<const Predicate*>(self))(value);
            return holds ? wait_decision::granted() : wait_decision::pending();
        } catch (...) {
            return wait_decision::refused(errc::predicate_failed);
        }
    }
};

// A wait for a count. Goal is a count_goal, or what becomes one while it stays where it is:
// the waiter's refers to the predicate in the Ask that lives with it.
template <class Owner, class Goal>
struct counter_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = void;
    using waiter_type = count_waiter;
    static constexpr request_traits traits{.refundable = true};

    Owner* owner;
    Goal goal;

    const executor_type& executor() const noexcept { return owner->executor(); }
    counter_state<threading>& state() const noexcept { return owner->state(); }

    wait_decision try_now() const noexcept { return state().try_now(goal); }
    void give_back() const noexcept {}
    void prepare(count_waiter& w) const noexcept { w.goal = goal; }
};

} // namespace turnstile::inline v0_1::detail
