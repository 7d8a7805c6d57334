// SPDX-License-Identifier: BSL-1.0
// The one initiation, through which every async_ function of the library goes. start_wait(request,
// token) tries the request first. A coroutine whose request is granted at once continues without
// suspending; every other wait becomes a wait_operation, which the state of the object queues or
// completes. wait_request.hpp describes what a request provides.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/buffer_allocator.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/util/coop_budget.hpp>
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

struct plain_handler {
    void operator()() const noexcept {}
};

// Whether the handler brings an immediate executor of its own, not merely the default.
template <class Handler, class Executor>
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
constexpr bool has_own_immediate_executor =
    !std::is_same_v<asio::associated_immediate_executor_t<Handler, Executor>,
                    asio::associated_immediate_executor_t<plain_handler, Executor>>;
#else
constexpr bool has_own_immediate_executor = false;
#endif

// An operation in memory from its handler's associated allocator, or if that has none, in
// what Asio recycles on this thread. The result goes to the handler as its arguments.
struct handler_memory {
    template <class Request>
    using collected = wait_outcome<typename Request::result_type>;

    template <class Handler>
    static auto allocator_for(const Handler& handler) noexcept
    {
        return handler_allocator<std::byte>(handler);
    }

    template <class Request>
    static collected<Request> collect(Request& request, typename Request::waiter_type& w,
                                      bool granted)
    {
        return wait_outcome_of(request, w, granted);
    }

    template <class Handler, class T>
    static void complete(Handler&& handler, wait_outcome<T>&& result)
    {
        if constexpr (std::is_void_v<T>)
            std::forward<Handler>(handler)(result.error);
        else
            std::forward<Handler>(handler)(result.error,
                                           nothrow_movable<T>::unwrap(std::move(result.value)));
    }
};

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
template <class Request, class Handler, class Memory>
void complete_immediately(Request& request, wait_decision decision, Handler&& handler,
                          const Memory& memory)
{
    wait_outcome<typename Request::result_type> result{decision.error()};
    if (decision.is_granted()) {
        if constexpr (concluding_request<Request>)
            result = request.conclude_now();
        else if constexpr (!std::is_void_v<typename Request::result_type>)
            result.value = request.take_now();
    }
    const auto executor = asio::get_associated_immediate_executor(handler, request.executor());
    const auto allocator = handler_allocator<std::byte>(handler);
    asio::dispatch(executor,
                   asio::bind_allocator(allocator, [memory, h = std::forward<Handler>(handler),
                                                    r = std::move(result)]() mutable {
                       memory.complete(std::move(h), std::move(r));
                   }));
}
#endif

// The first look at an operation that is not a coroutine's short cut.
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

// Makes an operation of what the first look has said, and hands it over.
template <class Request, class Handler, class Memory>
TURNSTILE_HOT void launch_wait(Request& request, wait_decision decision, Handler&& handler,
                               const Memory& memory)
{
    using handler_type = std::decay_t<Handler>;
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
    if constexpr (has_own_immediate_executor<handler_type, typename Request::executor_type>) {
        // What can be cancelled on its way is posted, as ever.
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
    op->decide(decision); // from here on, destroying the operation gives back
    op->start();
}

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

// The wait of a coroutine, to be awaited: an operation in the coroutine's own frame, which
// finds its result there.
template <class Request, class Executor>
class operation_frame {
    // Asio's handler for a suspended coroutine is a pointer or two; should a version's be
    // larger than this one, the operation goes to the heap.
    struct suspended_coroutine {
        using executor_type = Executor;
        executor_type get_executor() const noexcept;
        void operator()() noexcept {}
        void* state[2];
    };
    struct nothing {};
    // As large as `memory` below, which needs to know the size this one is for.
    struct memory_model {
        template <class>
        using collected = nothing;
        void* frame;
    };
    static constexpr std::size_t size =
        sizeof(wait_operation<Request, suspended_coroutine, memory_model>);

    class memory {
    public:
        template <class>
        using collected = nothing;

        explicit memory(operation_frame& frame) noexcept : frame_(&frame) {}

        template <class Handler>
        auto allocator_for(const Handler&) const noexcept
        {
            return buffer_allocator<std::byte, size>(frame_->room_);
        }

        nothing collect(Request& request, typename Request::waiter_type& w, bool granted) const
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
    // With what a first look has said, if there was one: that it must wait.
    operation_frame(Request& request, wait_decision decision) noexcept
        : request_(request), result_(decision)
    {
    }
    operation_frame(const operation_frame&) = delete;
    operation_frame& operator=(const operation_frame&) = delete;

    // What makes it awaitable: it can be initiated with any token, for void().
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
    alignas(std::max_align_t) std::byte room_[size];
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

// Where a coroutine that throws its errors finds what the predicate it waits for has thrown.
template <class Shape, class Request>
struct predicate_exception {
    explicit predicate_exception(Request&) noexcept {}
    void rethrow() const noexcept {}
};

template <class Shape, class Request>
    requires(Shape::throws_errors&& Request::traits.tests_predicate)
struct predicate_exception<Shape, Request> {
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

template <class Shape, class Request>
TURNSTILE_COLD auto fail(const Request& request, wait_decision why)
{
    if constexpr (Shape::throws_errors && Request::traits.explains_refusal) {
        if (why.is_refused())
            throw request.refusal(why.code());
    }
    return Shape::failure(why);
}

// What a coroutine finds that may take the short cut, and has the budget for it.
template <class Request>
TURNSTILE_HOT wait_decision attempt_before_suspending(Request& request, bool may_skip)
{
    return may_skip && coop_budget::try_consume() ? request.try_now()
                                                  : wait_decision::unattempted();
}

// A coroutine that need not wait does not suspend: it tries first. Where dropping the result
// would lose something, only a coroutine that nobody can cancel takes this short cut. Every
// variable is in the frame, and written there, so there are few.
template <class Shape, class Request>
auto wait_in_coroutine(Request request)
    -> asio::awaitable<typename Shape::value_type, typename Shape::executor_type>
{
    constexpr bool gives_nothing = std::is_void_v<typename Request::result_type>;
    bool may_skip = true;
    if constexpr (!Request::traits.refundable) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        may_skip = !state.slot().is_connected();
    }

    const predicate_exception<Shape, Request> exception(request);
    const wait_decision decision = attempt_before_suspending(request, may_skip);
    if (decision.is_granted()) [[likely]] {
        if constexpr (concluding_request<Request>)
            co_return Shape::result(request.conclude_now());
        else if constexpr (gives_nothing)
            co_return Shape::success();
        else
            co_return Shape::success(request.take_now());
    }
    if (decision.has_failed()) {
        exception.rethrow();
        co_return fail<Shape>(request, decision);
    }

    [[maybe_unused]] auto supplies = supplies_for(request);
    operation_frame<Request, typename Shape::executor_type> operation(request, decision);
    co_await std::move(operation); // stays where it is: Asio wants to see an rvalue
    coop_budget::reset();
    exception.rethrow();
    // NOLINTBEGIN(bugprone-use-after-move)
    if (!operation.result().decision().is_granted()) [[unlikely]]
        co_return fail<Shape>(request, operation.result().decision());
    if constexpr (concluding_request<Request>)
        co_return Shape::result(operation.result().take());
    else if constexpr (gives_nothing)
        co_return Shape::success();
    else
        co_return Shape::success(operation.result().take());
    // NOLINTEND(bugprone-use-after-move)
}

template <wait_request Request, class Token>
auto start_wait(Request request, Token&& token)
{
    using shape = coroutine_token<std::decay_t<Token>, typename Request::result_type>;
    if constexpr (shape::is_coroutine)
        return wait_in_coroutine<shape>(std::move(request));
    else
        return asio::async_initiate<Token,
                                    typename signature_of<typename Request::result_type>::type>(
            initiate_wait<Request>(std::move(request)), token);
}

} // namespace turnstile::inline v0_1::detail
