// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/resilience/detail/breaker_state.hpp>
#include <turnstile/resilience/detail/held_call.hpp>
#include <turnstile/resilience/detail/reject_call.hpp>
#include <turnstile/resilience/detail/stage_initiation.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A wait for a state of a circuit breaker.
template <class Breaker>
struct circuit_request {
    using executor_type = typename Breaker::executor_type;
    using threading = typename Breaker::threading_policy;
    using result_type = void;
    using waiter_type = circuit_waiter;
    static constexpr request_traits traits{.refundable = true};

    Breaker* breaker;
    circuit_state wanted;

    const executor_type& executor() const noexcept { return breaker->executor(); }
    auto& state() const noexcept { return breaker->block(); }

    wait_decision try_now() const noexcept { return state().look_for(wanted); }
    void give_back() const noexcept {}
    void prepare(circuit_waiter& w) const noexcept { w.wanted = wanted; }
};

// Calls an operation, or rejects it.
template <class Executor, class State>
class initiate_breaker_call : public stage_initiation<Executor, State> {
    using base = stage_initiation<Executor, State>;
    using base::executor_;
    using base::state_;

public:
    using base::base;

    template <class Handler, class Op, class Classify>
    void operator()(Handler&& handler, Op&& op, Classify classify) const
    {
        using signature = operation_signature_t<Op>;
        using call = held_call<State*, breaker_ticket>;
        breaker_ticket ticket;
        nanoseconds retry_after{};
        if (!state_->admit_call(ticket, retry_after))
            return reject_call<signature>(std::forward<Handler>(handler), executor_,
                                          errc::circuit_open, retry_after);
        call admitted(state_, ticket); // ends with whatever throws below
        report_end<signature, call, Classify> enter{std::move(classify)};
        detail::start(
            std::decay_t<Op>(std::forward<Op>(op)), executor_,
            enter(std::decay_t<Handler>(std::forward<Handler>(handler)), std::move(admitted)));
    }
};

} // namespace turnstile::inline v0_1::detail
