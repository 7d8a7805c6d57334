// SPDX-License-Identifier: BSL-1.0
// The launch of a wait: a request that was attempted becomes a wait_operation with the memory and
// the completion that fit its handler, and the state of the object takes it over. Used by
// start_wait() for completion handlers, by wait_in_coroutine() for coroutines, and by calls that
// wait for a permit.
//
// Invariants: no memory is allocated before the first attempt. No handler is called inside the
// initiating function, except through an immediate executor of its own. If an exception is thrown,
// the attempt has been undone.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/wait/wait_operation.hpp>
#include <turnstile/detail/wait/wait_request.hpp>

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
#    include <boost/asio/associated_immediate_executor.hpp>
#endif
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The result of a granted waiter; for a concluding request, its outcome.
template <class Request>
auto grant_of(Request& request, [[maybe_unused]] typename Request::waiter_type& w)
{
    if constexpr (concluding_request<Request>)
        return request.conclude(w);
    else if constexpr (std::is_void_v<typename Request::result_type>)
        return;
    else if constexpr (Request::traits.result == result_source::waiter)
        return request.take(w);
    else
        return request.take_now();
}

// The outcome of a waiter, whether it was granted or not.
template <class Request>
wait_outcome<typename Request::result_type>
wait_outcome_of(Request& request, typename Request::waiter_type& w, bool granted)
{
    wait_outcome<typename Request::result_type> result;
    if (!granted)
        result.error = w.error();
    else if constexpr (concluding_request<Request>)
        result = grant_of(request, w);
    else if constexpr (!std::is_void_v<typename Request::result_type>)
        result.value = grant_of(request, w);
    return result;
}

// The result of a coroutine's wait. It is stored in the frame of the coroutine from the end of the
// operation until the coroutine resumes. A coroutine that is destroyed before it resumes destroys
// the result, which gives back everything that was granted.
template <class Request,
          class Grant = decltype(grant_of(std::declval<Request&>(),
                                          std::declval<typename Request::waiter_type&>()))>
class wait_result {
public:
    // The decision before the operation starts: pending, or unattempted.
    explicit wait_result(wait_decision decision) noexcept : decision_(decision) {}
    wait_result(const wait_result&) = delete;
    wait_result& operator=(const wait_result&) = delete;
    ~wait_result()
    {
        if (decision_.is_granted()) [[likely]]
            std::destroy_at(&grant_);
    }

    wait_decision decision() const noexcept { return decision_; }
    Grant&& take() noexcept { return std::move(grant_); } // precondition: granted

    void conclude(Request& request, typename Request::waiter_type& w, bool granted)
    {
        if (granted) [[likely]] {
            ::new (static_cast<void*>(std::addressof(grant_))) Grant(grant_of(request, w));
            decision_ = wait_decision::granted();
        } else {
            decision_ = w.decision();
        }
    }

private:
    wait_decision decision_;
    union {
        Grant grant_;
    };
};

template <class Request>
class wait_result<Request, void> {
public:
    explicit wait_result(wait_decision decision) noexcept : decision_(decision) {}

    wait_decision decision() const noexcept { return decision_; }
    void conclude(Request&, typename Request::waiter_type& w, bool) noexcept
    {
        decision_ = w.decision();
    }

private:
    wait_decision decision_;
};

// A handler without any associated object.
struct plain_handler {
    void operator()() const noexcept {}
};

// Whether the handler has an immediate executor of its own, and not the default one.
template <class Handler, class Executor>
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
constexpr bool has_own_immediate_executor =
    !std::is_same_v<asio::associated_immediate_executor_t<Handler, Executor>,
                    asio::associated_immediate_executor_t<plain_handler, Executor>>;
#else
constexpr bool has_own_immediate_executor = false;
#endif

// The Memory of an operation for any handler: it is allocated with the handler's allocator, and the
// outcome is passed to the handler as its arguments.
struct handler_memory {
    template <class Request>
    using outcome_type = wait_outcome<typename Request::result_type>;

    template <class Handler>
    static auto allocator_for(const Handler& handler) noexcept
    {
        return handler_allocator<std::byte>(handler);
    }

    template <class Request>
    static outcome_type<Request> take_outcome(Request& request, typename Request::waiter_type& w,
                                              bool granted)
    {
        return wait_outcome_of(request, w, granted);
    }

    template <class Handler, class T>
    static void complete(Handler&& handler, wait_outcome<T>&& outcome)
    {
        if constexpr (std::is_void_v<T>)
            std::forward<Handler>(handler)(outcome.error);
        else
            std::forward<Handler>(handler)(outcome.error,
                                           nothrow_movable<T>::unwrap(std::move(outcome.value)));
    }
};

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
// Completes a decided request without an operation, on the handler's immediate executor.
template <class Request, class Handler, class Memory>
void complete_immediately(Request& request, wait_decision decision, Handler&& handler,
                          const Memory& memory)
{
    wait_outcome<typename Request::result_type> outcome{decision.error()};
    if (decision.is_granted()) {
        if constexpr (concluding_request<Request>)
            outcome = request.conclude_now();
        else if constexpr (!std::is_void_v<typename Request::result_type>)
            outcome.value = request.take_now();
    }
    const auto executor = asio::get_associated_immediate_executor(handler, request.executor());
    const auto allocator = handler_allocator<std::byte>(handler);
    asio::dispatch(executor,
                   asio::bind_allocator(allocator, [memory, h = std::forward<Handler>(handler),
                                                    o = std::move(outcome)]() mutable {
                       memory.complete(std::move(h), std::move(o));
                   }));
}
#endif

// The first attempt of a wait that does not take the short cut. An irrevocable request is attempted
// only if it completes on an immediate executor.
template <class Request, class Handler>
wait_decision first_attempt(Request& request, [[maybe_unused]] const Handler& handler)
{
    if constexpr (Request::traits.irrevocable) {
        constexpr bool immediate =
            has_own_immediate_executor<Handler, typename Request::executor_type>;
        if (!immediate || asio::get_associated_cancellation_slot(handler).is_connected())
            return wait_decision::pending();
    }
    return request.try_now();
}

// Starts the wait, or completes it if it is decided. Throws if there is no memory for it; a granted
// request has then been given back.
template <class Request, class Handler, class Memory>
TURNSTILE_HOT void launch_wait(Request& request, wait_decision decision, Handler&& handler,
                               const Memory& memory)
{
    using handler_type = std::decay_t<Handler>;
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
    if constexpr (has_own_immediate_executor<handler_type, typename Request::executor_type>) {
        // A wait that can be cancelled is posted, so that it can be cancelled until then.
        const bool safe = !asio::get_associated_cancellation_slot(handler).is_connected();
        if (!decision.is_pending() && safe)
            return complete_immediately(request, decision, std::forward<Handler>(handler), memory);
    }
#endif

    using operation = wait_operation<Request, handler_type, Memory>;
    operation* op = nullptr;
    try {
        op = operation::make(request, std::forward<Handler>(handler), memory);
    } catch (...) {
        if (decision.is_granted())
            request.give_back();
        throw;
    }
    op->decide(decision); // from here on, dropping the operation gives the grant back
    op->start();
}

// The initiation that is passed to asio::async_initiate.
template <class Request>
class initiate_wait {
public:
    using executor_type = typename Request::executor_type;

    explicit initiate_wait(Request request) noexcept : request_(std::move(request)) {}

    executor_type get_executor() const noexcept { return request_.executor(); }

    template <class Handler>
    void operator()(Handler&& handler)
    {
        const wait_decision decision = first_attempt(request_, handler);
        launch_wait(request_, decision, std::forward<Handler>(handler), handler_memory());
    }

private:
    Request request_;
};

} // namespace turnstile::inline v0_1::detail
