// SPDX-License-Identifier: BSL-1.0
//
// The completion token of timeout_after and timeout_at, and the initiation of async_with_timeout.
// The token wraps the initiation of any initiating function, so that its operation is started with
// the handler of a timeout_supervisor. The wrapped initiation has an executor if the original has
// one: adapters such as deferred and bind_executor see no difference.
#pragma once

#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/system_executor.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A completion token with a time limit.
template <class When, class Token>
struct timeout_token {
    When when;
    Token token;
};

// An initiation that runs `initiation` with the handler of a timeout_supervisor.
template <class Signature, class When, class Initiation>
struct timed_initiation {
    When when;
    Initiation initiation;

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) &&
    {
        // Asio's own default, an inline executor in newer versions, cannot run a timer.
        const auto executor = executor_for(
            handler, asio::get_associated_executor(initiation, asio::system_executor()));
        run_with_timeout<Signature>(
            std::decay_t<Handler>(std::forward<Handler>(handler)), executor, when,
            asio::cancellation_type::all, [&](const auto&, auto inner) {
                std::move(initiation)(std::move(inner), std::forward<Args>(args)...);
            });
    }
    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const&
    {
        timed_initiation(*this).template operator()<Handler, Args...>(
            std::forward<Handler>(handler), std::forward<Args>(args)...);
    }
};

// A timed_initiation with the executor of the original initiation.
template <class Signature, class When, class Initiation>
struct timed_initiation_with_executor : timed_initiation<Signature, When, Initiation> {
    using executor_type = typename Initiation::executor_type;
    executor_type get_executor() const noexcept { return this->initiation.get_executor(); }
};

template <class Signature, class When, class Initiation>
auto make_timed_initiation(const When& when, Initiation&& initiation)
{
    using stored = std::decay_t<Initiation>;
    using plain = timed_initiation<Signature, When, stored>;
    if constexpr (requires { typename stored::executor_type; })
        return timed_initiation_with_executor<Signature, When, stored>{
            plain{when, std::forward<Initiation>(initiation)}};
    else
        return plain{when, std::forward<Initiation>(initiation)};
}

// The initiation of async_with_timeout and basic_timeout. If neither the caller nor the handler
// names an executor, the operation's is used.
template <class Executor, class When, class Op, class Token>
auto with_timeout(const Executor& executor, const When& when, std::shared_ptr<timeout_state> state,
                  Op&& op, Token& token)
{
    using op_type = std::decay_t<Op>;
    using signature = operation_signature_t<Op>;
    return asio::async_initiate<Token, signature>(
        [executor, when, state = std::move(state)](auto handler, op_type o) mutable {
            using handler_type = decltype(handler);
            if constexpr (!needs_executor<handler_type, Executor>) {
                const auto where = executor_for(handler, executor);
                run_with_timeout<signature>(
                    std::move(handler), where, when, asio::cancellation_type::all,
                    [&](const auto& strand, auto inner) {
                        initiate(std::move(o), strand, std::move(inner));
                    },
                    std::move(state));
            } else if constexpr (coroutine_operation<op_type>) {
                static_assert(is_never<handler_type>,
                              "The handler has no executor for the coroutine to run on. Pass an "
                              "executor to async_with_timeout as its first argument.");
            } else {
                std::move(o)(timeout_token<When, handler_type>{when, std::move(handler)});
            }
        },
        token, std::forward<Op>(op));
}

} // namespace turnstile::inline v0_1::detail

template <class When, class Token, class Signature>
class boost::asio::async_result<turnstile::detail::timeout_token<When, Token>, Signature> {
public:
    template <class Initiation, class Timed, class... Args>
    static auto initiate(Initiation&& initiation, Timed&& timed, Args&&... args)
        -> decltype(asio::async_initiate<Token, Signature>(
            turnstile::detail::make_timed_initiation<Signature>(
                timed.when, std::forward<Initiation>(initiation)),
            timed.token, std::forward<Args>(args)...))
    {
        Token token(std::forward<Timed>(timed).token);
        return asio::async_initiate<Token, Signature>(
            turnstile::detail::make_timed_initiation<Signature>(
                timed.when, std::forward<Initiation>(initiation)),
            token, std::forward<Args>(args)...);
    }
};

// Outside a timeout, `as_tuple` and `redirect_error` leave a signature without an error, which
// cannot report a timeout.
template <class When, class Token, class Signature>
    requires(!turnstile::detail::result_traits<Signature>::reports_failure)
class boost::asio::async_result<turnstile::detail::timeout_token<When, Token>, Signature> {
public:
    using return_type = typename turnstile::detail::timed_call<Signature>::type;

    template <class Initiation, class... Args>
    static auto initiate(Initiation&&, Args&&...)
    {
        return turnstile::detail::explain_timeout<Signature>();
    }
};
