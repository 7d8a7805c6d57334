// SPDX-License-Identifier: BSL-1.0
//
// Calls that need a permit before their operation is started, and the result of a call that is
// refused. The async_call functions of bulkheads and rate limiters use `call_when_permitted`; a
// circuit breaker, whose calls never wait, uses `reject_call`.
//
// A granted permit is handed to the operation's completion handler, or given back if the operation
// cannot be started: it is never lost.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/handler_wrapper.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <boost/asio/async_result.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The results of a refused call, in the form of its signature. Where failures are exceptions, it is
// a `rejection`, which carries `retry_after`. `stage`, if not null, begins its message.
template <class Signature>
auto rejected_result(const error_code& ec, nanoseconds retry_after, const char* stage = nullptr) ->
    typename result_traits<Signature>::tuple
{
    using traits = result_traits<Signature>;
    static_assert(traits::can_make_failure,
                  "A call that may be refused needs a way to report it: the operation's signature "
                  "must start with an error_code or an exception_ptr, and its other arguments must "
                  "be default constructible.");
    if constexpr (!traits::can_make_failure) {
        std::terminate(); // avoids further compiler errors after the static_assert
    } else {
        if constexpr (traits::reports_exception) {
            const auto code = static_cast<errc>(ec.value());
            if (ec.category() == error_category())
                return traits::from_failure(std::make_exception_ptr(
                    stage ? rejection(code, retry_after, stage) : rejection(code, retry_after)));
        }
        return traits::from_error(ec);
    }
}

// A request names its stage if its error codes do not identify it.
template <class Request>
constexpr const char* stage_name_of() noexcept
{
    if constexpr (requires { Request::stage; })
        return Request::stage;
    else
        return nullptr;
}

// Completes a refused call: posts the handler to its associated executor, by default `executor`.
template <class Signature, class Executor, class Handler>
void reject_call(Handler&& handler, const Executor& executor, errc code, nanoseconds retry_after)
{
    post_handler(std::forward<Handler>(handler), executor,
                 rejected_result<Signature>(code, retry_after));
}

// The completion handler of the wait for the permit: starts the operation, or completes the call
// with the error. wrap(handler, permit) makes the operation's completion handler.
template <class Op, class Executor, class Handler, class Wrap>
struct permit_handler {
    using wrapped_handler = Handler;

    std::optional<Op> op;
    Executor executor;
    Handler handler;
    Wrap wrap;
    nanoseconds retry_after; // of the rejection
    const char* stage;       // see rejected_result

    const Handler& get() const noexcept { return handler; }
    // The wait calls this before it completes with an error, if it knows the delay.
    void note_retry_after(nanoseconds delay) noexcept { retry_after = delay; }

    template <class... Permit>
    void operator()(const error_code& ec, Permit&&... permit)
    {
        if (ec) {
            op.reset(); // values that it has captured are destroyed before the caller continues
            return std::apply(std::move(handler),
                              rejected_result<operation_signature_t<Op>>(ec, retry_after, stage));
        }
        start_in_completion(std::move(*op), executor,
                            wrap(std::move(handler), std::forward<Permit>(permit)...));
    }
};

// The initiation of a call that needs a permit. If the request is granted at once, the operation is
// started inside the initiating function.
template <class Request>
class permitted_call_initiation {
public:
    using executor_type = typename Request::executor_type;

    explicit permitted_call_initiation(Request request) : request_(std::move(request)) {}

    executor_type get_executor() const noexcept { return request_.executor(); }

    template <class Handler, class Op, class Wrap>
    void operator()(Handler&& handler, Op&& op, Wrap wrap)
    {
        using op_type = std::decay_t<Op>;
        using handler_type = std::decay_t<Handler>;
        using wait_handler = permit_handler<op_type, executor_type, handler_type, Wrap>;
        const wait_decision decision = request_.try_now();
        if (!decision.is_granted())
            return launch_wait(request_, decision,
                               wait_handler{std::forward<Op>(op), request_.executor(),
                                            std::forward<Handler>(handler), std::move(wrap),
                                            request_.retry_after, stage_name_of<Request>()},
                               handler_memory());
        const auto start_with = [&](auto&&... permit) {
            detail::start(op_type(std::forward<Op>(op)), request_.executor(),
                          wrap(handler_type(std::forward<Handler>(handler)),
                               std::forward<decltype(permit)>(permit)...));
        };
        // If an exception is thrown, the permit is given back.
        if constexpr (std::is_void_v<typename Request::result_type>) {
            try {
                start_with();
            } catch (...) {
                request_.give_back();
                throw;
            }
        } else {
            start_with(request_.take_now());
        }
    }

private:
    Request request_;
};

// For permits that need no action when the operation completes: the handler stays as it is.
struct keep_handler {
    template <class Handler>
    Handler operator()(Handler handler) const
    {
        return handler;
    }
};

// Runs an operation once the request is granted. The permit is passed to wrap(handler, permit),
// which makes the operation's completion handler.
template <class Request, operation Op, class Token, class Wrap = keep_handler>
auto call_when_permitted(Request request, Op&& op, Token&& token, Wrap wrap = Wrap())
{
    return asio::async_initiate<Token, operation_signature_t<Op>>(
        permitted_call_initiation<Request>(std::move(request)), token, std::forward<Op>(op),
        std::move(wrap));
}

} // namespace turnstile::inline v0_1::detail
