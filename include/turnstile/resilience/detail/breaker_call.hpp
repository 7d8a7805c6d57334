#pragma once

#include <turnstile/core/detail/observing_handler.hpp>
#include <turnstile/core/detail/operation_start.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/resilience/detail/breaker_state.hpp>
#include <turnstile/resilience/detail/reject_call.hpp>

#include <boost/asio/associated_executor.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// A wait for a state of a circuit breaker.
template <class Breaker>
struct circuit_ask {
    using executor_type = typename Breaker::executor_type;
    using threading = typename Breaker::threading_policy;
    using result_type = void;
    using waiter_type = circuit_waiter;
    static constexpr bool refundable = true; // there is nothing to lose

    Breaker* breaker;
    circuit_state wanted;

    const executor_type& executor() const noexcept { return breaker->executor(); }
    auto& state() const noexcept { return breaker->block(); }

    verdict try_now() const noexcept { return state().look_for(wanted); }
    void give_back() const noexcept {}
    void prepare(circuit_waiter& w) const noexcept { w.wanted = wanted; }
};

// Says that the rule of the breaker's options holds.
struct usual_classifier {};

// Observes one admitted call, and reports its end. It keeps the state, since the object may
// be gone by then.
template <class Signature, class State, class Classify>
class call_reporter {
    using traits = result_traits<Signature>;

public:
    call_reporter(State& state, const breaker_ticket& ticket, Classify classify)
        : state_(&state), ticket_(ticket), classify_(std::move(classify))
    {
    }
    call_reporter(call_reporter&&) noexcept = default;
    ~call_reporter()
    {
        if (state_)
            state_->report(ticket_, call_outcome::ignored);
    }

    void operator()(const typename traits::tuple& results) noexcept
    {
        const boost::intrusive_ptr<State> state = std::move(state_);
        state->report(ticket_, outcome(*state, results));
    }

private:
    call_outcome outcome(State& state, const typename traits::tuple& results) noexcept
    {
        try {
            if constexpr (std::is_same_v<Classify, usual_classifier>)
                return state.classify(traits::failure_of(results));
            else
                return std::apply(classify_, results);
        } catch (...) {
            return call_outcome::failure;
        }
    }

    boost::intrusive_ptr<State> state_;
    breaker_ticket ticket_;
    [[no_unique_address]] Classify classify_;
};

template <class Executor, class State>
class initiate_breaker_call {
public:
    using executor_type = Executor;

    initiate_breaker_call(const Executor& executor, State& state) noexcept
        : executor_(executor), state_(&state)
    {
    }

    executor_type get_executor() const noexcept { return executor_; }

    template <class Handler, class Op, class Classify>
    void operator()(Handler&& handler, Op&& op, Classify classify) const
    {
        using signature = operation_signature_t<Op>;
        using reporter = call_reporter<signature, State, Classify>;
        breaker_ticket ticket;
        nanoseconds retry_after{};
        if (!state_->admit_call(ticket, retry_after))
            return reject_call<signature>(std::forward<Handler>(handler), executor_,
                                          errc::circuit_open, retry_after);
        reporter report(*state_, ticket, std::move(classify));
        const auto where = asio::get_associated_executor(handler, executor_);
        start(std::forward<Op>(op), where,
              observe<signature>(std::forward<Handler>(handler), std::move(report)));
    }

private:
    Executor executor_;
    State* state_;
};

} // namespace turnstile::detail
