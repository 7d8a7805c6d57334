// SPDX-License-Identifier: BSL-1.0
// The initiation that all initiating functions of the primitives share: start_wait(request, token).
// It tries the request first. A coroutine whose request is granted or refused at once continues
// without suspending, which is called the short cut; every other wait becomes a wait_operation,
// which the state of the object queues or completes. wait_request.hpp describes the requests.
//
// Invariants: no memory is allocated before the first attempt. No handler is called inside the
// initiating function, except through an immediate executor of its own. If an exception is thrown,
// the attempt has been undone.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/buffer_allocator.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/util/coop_budget.hpp>
#include <turnstile/detail/util/frame_cache.hpp>
#include <turnstile/detail/wait/coroutine_token.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_operation.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>
#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/detail/wait/wait_result.hpp>

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
#    include <boost/asio/associated_immediate_executor.hpp>
#endif
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

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

// The wait of a coroutine, as an object to be awaited. It is a variable of the coroutine, so the
// operation and its result are stored in the coroutine's frame.
template <class Request, class Executor>
class operation_frame {
    // A model of Asio's handler for a suspended coroutine, which has one or two pointers. If a
    // version of Asio has a larger one, the operation is allocated on the heap.
    struct suspended_coroutine {
        using executor_type = Executor;
        executor_type get_executor() const noexcept;
        void operator()() noexcept {}
        void* state[2];
    };
    struct nothing {};
    // As large as `memory` below, whose definition depends on `size`.
    struct memory_model {
        template <class>
        using outcome_type = nothing;
        void* frame;
    };
    static constexpr std::size_t size =
        sizeof(wait_operation<Request, suspended_coroutine, memory_model>);

    // The Memory of the operation. The outcome goes to the frame, not through the handler.
    class memory {
    public:
        template <class>
        using outcome_type = nothing;

        explicit memory(operation_frame& frame) noexcept : frame_(&frame) {}

        template <class Handler>
        auto allocator_for(const Handler&) const noexcept
        {
            return buffer_allocator<std::byte, size>(frame_->storage_);
        }

        nothing take_outcome(Request& request, typename Request::waiter_type& w, bool granted) const
        {
            frame_->result_.conclude(request, w, granted);
            if constexpr (Request::traits.reports_retry_after)
                frame_->request_.retry_after = w.retry_after;
            return {};
        }

        template <class Handler>
        void complete(Handler&& handler, nothing) const
        {
            std::forward<Handler>(handler)();
        }

    private:
        operation_frame* frame_;
    };

    struct initiation {
        operation_frame* self;

        template <class Handler>
        TURNSTILE_HOT void operator()(Handler&& handler) const
        {
            wait_decision decision = self->result_.decision();
            if (decision.is_unattempted())
                decision = first_attempt(self->request_, handler);
            launch_wait(self->request_, decision, std::forward<Handler>(handler), memory(*self));
        }
    };

public:
    // The decision is pending, or unattempted.
    operation_frame(Request& request, wait_decision decision) noexcept
        : request_(request), result_(decision)
    {
    }
    operation_frame(const operation_frame&) = delete;
    operation_frame& operator=(const operation_frame&) = delete;

    // Makes it awaitable: Asio awaits a function object that takes any token, for void().
    template <class Token>
    auto operator()(Token&& token)
        -> decltype(asio::async_initiate<Token, void()>(std::declval<initiation>(), token))
    {
        return asio::async_initiate<Token, void()>(initiation{this}, token);
    }

    wait_result<Request>& result() noexcept { return result_; }

private:
    Request& request_;
    wait_result<Request> result_;
    alignas(std::max_align_t) std::byte storage_[size];
};

struct no_supplies {};

template <class Request>
auto supplies_for(Request& request)
{
    if constexpr (Request::traits.needs_supplies)
        return request.supplies();
    else
        return no_supplies();
}

// The exception of a predicate, for a coroutine that awaits with use_awaitable.
template <class TokenForm, class Request>
struct predicate_exception {
    explicit predicate_exception(Request&) noexcept {}
    void rethrow() const noexcept {}
};

template <class TokenForm, class Request>
    requires(TokenForm::throws_errors&& Request::traits.tests_predicate)
struct predicate_exception<TokenForm, Request> {
    explicit predicate_exception(Request& request) noexcept
    {
        request.predicate_guard().keep_exception_in(thrown);
    }
    void rethrow() const
    {
        if (thrown)
            std::rethrow_exception(thrown);
    }
    std::exception_ptr thrown;
};

// Reports a failed wait to the coroutine.
template <class TokenForm, class Request>
TURNSTILE_COLD auto fail(const Request& request, wait_decision why)
{
    if constexpr (TokenForm::throws_errors && Request::traits.explains_refusal) {
        if (why.is_refused())
            throw request.refusal(why.code());
    }
    return TokenForm::failure(why);
}

// Attempts the request if the coroutine may take the short cut and has the budget for it.
template <class Request>
TURNSTILE_HOT wait_decision attempt_before_suspending(Request& request, bool may_take_short_cut)
{
    return may_take_short_cut && coop_budget::try_consume() ? request.try_now()
                                                            : wait_decision::unattempted();
}

// The nested coroutine of a wait. It attempts the request first, and does not suspend if the
// request is decided. If dropping the result would lose something, it takes this short cut only if
// it cannot be cancelled. It has few variables, because each of them is written to the frame.
template <class TokenForm, class Request>
auto wait_in_coroutine(frame_cache, Request request)
    -> asio::awaitable<typename TokenForm::value_type, typename TokenForm::executor_type>
{
    constexpr bool gives_nothing = std::is_void_v<typename Request::result_type>;
    bool may_take_short_cut = true;
    if constexpr (!Request::traits.refundable) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        may_take_short_cut = !state.slot().is_connected();
    }

    const predicate_exception<TokenForm, Request> exception(request);
    const wait_decision decision = attempt_before_suspending(request, may_take_short_cut);
    if (decision.is_granted()) [[likely]] {
        if constexpr (concluding_request<Request>)
            co_return TokenForm::result(request.conclude_now());
        else if constexpr (gives_nothing)
            co_return TokenForm::success();
        else
            co_return TokenForm::success(request.take_now());
    }
    if (decision.has_failed()) {
        exception.rethrow();
        co_return fail<TokenForm>(request, decision);
    }

    [[maybe_unused]] auto supplies = supplies_for(request);
    operation_frame<Request, typename TokenForm::executor_type> operation(request, decision);
    co_await std::move(operation); // not moved: Asio takes an rvalue reference
    coop_budget::reset();
    exception.rethrow();
    // NOLINTBEGIN(bugprone-use-after-move)
    if (!operation.result().decision().is_granted()) [[unlikely]]
        co_return fail<TokenForm>(request, operation.result().decision());
    if constexpr (concluding_request<Request>)
        co_return TokenForm::result(operation.result().take());
    else if constexpr (gives_nothing)
        co_return TokenForm::success();
    else
        co_return TokenForm::success(operation.result().take());
    // NOLINTEND(bugprone-use-after-move)
}

// Initiates the wait that the request describes.
template <wait_request Request, class Token>
auto start_wait(Request request, Token&& token)
{
    using token_form = coroutine_token<std::decay_t<Token>, typename Request::result_type>;
    if constexpr (token_form::is_coroutine)
        return wait_in_coroutine<token_form>(frame_cache(), std::move(request));
    else
        return asio::async_initiate<Token,
                                    typename signature_of<typename Request::result_type>::type>(
            initiate_wait<Request>(std::move(request)), token);
}

} // namespace turnstile::inline v0_1::detail
