// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/handler_wrapper.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/detail/reject_call.hpp>

#include <boost/asio/async_result.hpp>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// What is called when an operation may go, or may not. Enter makes the operation's handler, from
// the caller's and what was granted.
template <class Op, class Executor, class Handler, class Enter>
struct permitted_call {
    using wrapped_handler = Handler;

    std::optional<Op> op;
    Executor executor;
    Handler handler;
    Enter enter;
    nanoseconds retry_after; // if it may not, as `stage`
    const char* stage;

    const Handler& get() const noexcept { return handler; }
    void note_retry_after(nanoseconds delay) noexcept { retry_after = delay; }

    template <class... Permit>
    void operator()(const error_code& ec, Permit&&... permit)
    {
        if (ec) {
            op.reset(); // what it owns goes before the caller goes on
            return std::apply(std::move(handler),
                              rejected_result<operation_signature_t<Op>>(ec, retry_after, stage));
        }
        start_in_completion(std::move(*op), executor,
                            enter(std::move(handler), std::forward<Permit>(permit)...));
    }
};

// Runs an operation once an Ask is granted. If that is so at once it is started right away: then
// nobody can come between the permit and its use.
template <class Request>
class initiate_permitted {
public:
    using executor_type = typename Request::executor_type;

    explicit initiate_permitted(Request request) : request_(std::move(request)) {}

    executor_type get_executor() const noexcept { return request_.executor(); }

    template <class Handler, class Op, class Enter>
    void operator()(Handler&& handler, Op&& op, Enter enter)
    {
        using op_type = std::decay_t<Op>;
        using handler_type = std::decay_t<Handler>;
        using call = permitted_call<op_type, executor_type, handler_type, Enter>;
        const wait_decision decision = request_.try_now();
        if (!decision.is_granted())
            return launch_wait(request_, decision,
                               call{std::forward<Op>(op), request_.executor(),
                                    std::forward<Handler>(handler), std::move(enter),
                                    request_.retry_after, stage_name()},
                               handler_memory());
        const auto start_with = [&](auto&&... permit) {
            detail::start(op_type(std::forward<Op>(op)), request_.executor(),
                          enter(handler_type(std::forward<Handler>(handler)),
                                std::forward<decltype(permit)>(permit)...));
        };
        // If anything throws, what was granted goes back.
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
    // For the exceptions of a stage whose error codes do not tell it from others.
    static constexpr const char* stage_name() noexcept
    {
        if constexpr (requires { Request::stage; })
            return Request::stage;
        else
            return nullptr;
    }

    Request request_;
};

// Where nothing is to be done at the end of the operation.
struct enter_freely {
    template <class Handler>
    Handler operator()(Handler handler) const
    {
        return handler;
    }
};

template <class Request, operation Op, class Token, class Enter = enter_freely>
auto call_when_permitted(Request request, Op&& op, Token&& token, Enter enter = Enter())
{
    return asio::async_initiate<Token, operation_signature_t<Op>>(
        initiate_permitted<Request>(std::move(request)), token, std::forward<Op>(op),
        std::move(enter));
}

} // namespace turnstile::inline v0_1::detail
