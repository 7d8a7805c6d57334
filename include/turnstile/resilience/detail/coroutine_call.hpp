// SPDX-License-Identifier: BSL-1.0
//
// The call of a coroutine, by a coroutine, that needs a permit: circuit breaker, bulkhead and rate
// limiter run the operation inside the caller's coroutine (call_coroutine.hpp). All other calls go
// through permitted_call.hpp and circuit_breaker_call.hpp.
//
// Invariant: the permit is reported or released before the caller continues, and also if the
// coroutine is destroyed.
#pragma once

#include <turnstile/detail/call/call_coroutine.hpp>
#include <turnstile/detail/util/frame_cache.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/detail/admitted_call.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A permit that needs no report.
struct no_permit {
    explicit operator bool() const noexcept { return false; }
};

template <class Request>
using permit_of = std::conditional_t<std::is_void_v<typename Request::result_type>, no_permit,
                                     typename Request::result_type>;

// Makes a permit for a request that was granted at once.
template <class Request>
permit_of<Request> take_permit(Request& request)
{
    if constexpr (std::is_void_v<typename Request::result_type>)
        return {};
    else
        return request.take_now();
}

// Waits for a permit, and returns the decision.
template <class Executor, class Request>
auto await_permit(cached_frame, Request& request, wait_decision decision,
                  permit_of<Request>& permit) -> asio::awaitable<wait_decision, Executor>
{
    operation_frame<Request, Executor> wait(request, decision);
    co_await std::move(wait); // not moved: Asio takes an rvalue reference
    coop_budget::reset();
    // NOLINTBEGIN(bugprone-use-after-move)
    if constexpr (!std::is_void_v<typename Request::result_type>) {
        if (wait.result().decision().is_granted())
            permit = wait.result().take();
    }
    co_return wait.result().decision();
    // NOLINTEND(bugprone-use-after-move)
}

// Reports the results of a call that has a permit.
template <class Signature, class Permit, class Classify>
void report_results(Permit& permit, Classify& classify,
                    const typename result_traits<Signature>::tuple& results)
{
    if constexpr (!std::is_same_v<Permit, no_permit>)
        call_reporter<Signature, Permit, Classify>(std::move(permit), std::move(classify))(results);
}

template <class Request, coroutine_operation Op, class Classify = default_classifier>
auto call_in_coroutine(call_frame, Request request, Op op, Classify classify = Classify())
    -> std::invoke_result_t<Op>
{
    using signature = operation_signature_t<Op>;
    using results_type = typename result_traits<signature>::tuple;
    using executor_type = operation_executor_t<Op>;

    permit_of<Request> permit{};
    wait_decision decision = request.try_now();
    if (decision.is_granted()) [[likely]] {
        permit = take_permit(request);
    } else if constexpr (requires { typename Request::waiter_type; }) { // otherwise it never waits
        if (!decision.has_failed())
            decision =
                co_await await_permit<executor_type>(cached_frame(), request, decision, permit);
    }
    if (!decision.is_granted()) [[unlikely]] {
        // A loop of refused calls lets other handlers run.
        if (!coop_budget::try_consume()) {
            co_await asio::post(asio::use_awaitable_t<executor_type>());
            coop_budget::reset();
        }
        std::rethrow_exception(std::get<0>(rejected_result<signature>(
            decision.error(), request.retry_after, stage_name_of<Request>())));
    }

    std::exception_ptr thrown;
    try {
        if constexpr (std::tuple_size_v<results_type> == 1) {
            co_await std::move(op)();
            report_results<signature>(permit, classify, results_type());
            co_return;
        } else {
            results_type results(nullptr, co_await std::move(op)());
            report_results<signature>(permit, classify, results);
            co_return std::get<1>(std::move(results));
        }
    } catch (...) {
        thrown = std::current_exception();
    }
    if (permit)
        report_results<signature>(permit, classify, result_traits<signature>::from_failure(thrown));
    std::rethrow_exception(thrown);
}

// Runs an operation when the request of a rate limiter is granted.
template <class Request, operation Op, class Token>
auto limited_call(Request request, Op&& op, Token&& token)
{
    if constexpr (called_in_coroutine<Op, Token>)
        return call_in_coroutine(call_frame(), std::move(request),
                                 std::decay_t<Op>(std::forward<Op>(op)));
    else
        return call_when_permitted(std::move(request), std::forward<Op>(op),
                                   std::forward<Token>(token));
}

} // namespace turnstile::inline v0_1::detail
