// SPDX-License-Identifier: BSL-1.0
//
// The operations of a circuit breaker: the request of async_wait_state, and the initiation of
// async_call. basic_circuit_breaker uses both. A call is admitted or refused inside the initiating
// function; it never waits.
#pragma once

#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/resilience/detail/admitted_call.hpp>
#include <turnstile/resilience/detail/circuit_breaker_state.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A wait for a state of the circuit.
template <class Breaker>
struct circuit_breaker_request {
    using executor_type = typename Breaker::executor_type;
    using threading = typename Breaker::threading_policy;
    using result_type = void;
    using waiter_type = circuit_breaker_waiter;
    static constexpr request_traits traits{.refundable = true};

    Breaker* breaker;
    circuit_state wanted;

    const executor_type& executor() const noexcept { return breaker->executor(); }
    auto& state() const noexcept { return breaker->block(); }

    wait_decision try_now() const noexcept { return state().try_wait(wanted); }
    void give_back() const noexcept {}
    void prepare(circuit_breaker_waiter& w) const noexcept { w.wanted = wanted; }
};

// A call, as a request for call_in_coroutine: it is admitted or refused at once. Pointer as for
// circuit_breaker_initiation.
template <class Pointer>
struct circuit_breaker_call_request {
    using result_type = admitted_call<Pointer, circuit_breaker_ticket>;

    Pointer state;
    circuit_breaker_ticket ticket{};
    nanoseconds retry_after{};

    wait_decision try_now() noexcept
    {
        return state->admit_call(ticket, retry_after) ? wait_decision::granted()
                                                      : wait_decision::refused(errc::circuit_open);
    }
    result_type take_now() const noexcept { return result_type(state, ticket); }
};

// The initiation of async_call: starts the operation, or completes the call with
// errc::circuit_open. Pointer points to the state, or to an entry of a keyed breaker, which it
// owns.
template <class Executor, class Pointer>
class circuit_breaker_initiation {
public:
    using executor_type = Executor;

    circuit_breaker_initiation(const Executor& executor, Pointer state) noexcept
        : executor_(executor), state_(std::move(state))
    {
    }

    executor_type get_executor() const noexcept { return executor_; }

    template <class Handler, class Op, class Classify>
    void operator()(Handler&& handler, Op&& op, Classify classify) const
    {
        using signature = operation_signature_t<Op>;
        using call = admitted_call<Pointer, circuit_breaker_ticket>;
        circuit_breaker_ticket ticket;
        nanoseconds retry_after{};
        if (!state_->admit_call(ticket, retry_after))
            return reject_call<signature>(std::forward<Handler>(handler), executor_,
                                          errc::circuit_open, retry_after);
        call admitted(state_, ticket); // reported as ignored if one of the moves below throws
        report_on_completion<signature, call, Classify> wrap{std::move(classify)};
        detail::start(
            std::decay_t<Op>(std::forward<Op>(op)), executor_,
            wrap(std::decay_t<Handler>(std::forward<Handler>(handler)), std::move(admitted)));
    }

private:
    Executor executor_;
    Pointer state_;
};

} // namespace turnstile::inline v0_1::detail
