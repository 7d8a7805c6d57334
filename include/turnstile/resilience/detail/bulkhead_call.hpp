#pragma once

#include <turnstile/core/detail/observing_handler.hpp>
#include <turnstile/core/detail/operation_start.hpp>
#include <turnstile/core/detail/start_wait.hpp>
#include <turnstile/resilience/detail/bulkhead_state.hpp>
#include <turnstile/resilience/detail/held_call.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>

#include <tuple>
#include <utility>

namespace turnstile::detail {

// A wait to be let in; the result says with whom, by adopt(State&).
template <class Executor, class State, class Threading, class Result>
struct bulkhead_ask {
    using executor_type = Executor;
    using threading = Threading;
    using result_type = Result;
    using waiter_type = bulkhead_waiter;
    static constexpr bool refundable = true;

    const Executor* home;
    State* gate;

    const executor_type& executor() const noexcept { return *home; }
    State& state() const noexcept { return *gate; }

    verdict try_now() const noexcept { return gate->try_now(1); }
    void give_back() const noexcept { gate->give_back(); }
    void prepare(bulkhead_waiter& w) const noexcept { w.deadline = gate->deadline(); }
    Result take_now() const noexcept { return Result(gate, gate->ticket()); }
    Result take(bulkhead_waiter&) const noexcept { return take_now(); }
};

// A call that has been let in and may outlive the bulkhead.
template <class State>
using bulkhead_call = held_call<boost::intrusive_ptr<State>, bulkhead_ticket>;

template <class Op, class Executor, class Handler, class State, class Classify>
void start_in_bulkhead(Op op, const Executor& executor, Handler handler, bulkhead_call<State> call,
                       Classify classify)
{
    using signature = operation_signature_t<Op>;
    using reporter = call_reporter<signature, bulkhead_call<State>, Classify>;
    const auto where = asio::get_associated_executor(handler, executor);
    start(std::move(op), where,
          observe<signature>(std::move(handler), reporter(std::move(call), std::move(classify))));
}

// What a call does when its wait is over.
template <class Op, class Executor, class Handler, class State, class Classify>
struct enter_bulkhead {
    Op op;
    Executor executor;
    Handler handler;
    Classify classify;

    void operator()(error_code ec, bulkhead_call<State> call)
    {
        if (ec)
            return std::apply(std::move(handler), operation_result<Op>::from_error(ec));
        start_in_bulkhead(std::move(op), executor, std::move(handler), std::move(call),
                          std::move(classify));
    }
};

// Waits to be let in if need be, and calls the operation.
template <class Executor, class State, class Threading>
class initiate_bulkhead_call {
public:
    using executor_type = Executor;

    initiate_bulkhead_call(const Executor& executor, State& state) noexcept
        : executor_(executor), state_(&state)
    {
    }

    executor_type get_executor() const noexcept { return executor_; }

    template <class Handler, class Op, class Classify>
    void operator()(Handler&& handler, Op&& op, Classify classify) const
    {
        using operation_type = std::decay_t<Op>;
        using handler_type = std::decay_t<Handler>;
        using call = bulkhead_call<State>;
        using ask = bulkhead_ask<Executor, State, Threading, call>;
        using next = enter_bulkhead<operation_type, Executor, handler_type, State, Classify>;
        if (state_->try_acquire(1))
            return start_in_bulkhead(operation_type(std::forward<Op>(op)), executor_,
                                     handler_type(std::forward<Handler>(handler)),
                                     call(state_, state_->ticket()), std::move(classify));
        initiate_wait<ask> wait(ask{&executor_, state_});
        wait(next{std::forward<Op>(op), executor_, std::forward<Handler>(handler),
                  std::move(classify)});
    }

private:
    Executor executor_;
    State* state_;
};

} // namespace turnstile::detail

template <template <class, class> class Associator, class Op, class Executor, class Handler,
          class State, class Classify, class Default>
struct boost::asio::associator<
    Associator, turnstile::detail::enter_bulkhead<Op, Executor, Handler, State, Classify>, Default>
    : Associator<Handler, Default> {
    using next = turnstile::detail::enter_bulkhead<Op, Executor, Handler, State, Classify>;

    static typename Associator<Handler, Default>::type get(const next& n) noexcept
    {
        return Associator<Handler, Default>::get(n.handler);
    }
    static decltype(auto) get(const next& n, const Default& c) noexcept
    {
        return Associator<Handler, Default>::get(n.handler, c);
    }
};
