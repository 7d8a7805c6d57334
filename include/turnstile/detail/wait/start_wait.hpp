// SPDX-License-Identifier: BSL-1.0
// The initiation that all initiating functions of the primitives share: start_wait(request, token).
// For a coroutine (use_awaitable, as_tuple(use_awaitable)) it returns a nested coroutine, which
// attempts the request first: if the request is granted or refused at once it continues without
// suspending, which is called the short cut; otherwise its frame holds the operation. For every
// other token the wait is launched with the completion handler (launch_wait.hpp).
// wait_request.hpp describes the requests.
//
// The file also has the parts that only this initiation uses: coop_budget, which bounds the number
// of successive short cuts, coroutine_token, which recognises the tokens of coroutines, and
// operation_frame, the memory of an operation in a coroutine's frame.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/frame_cache.hpp>
#include <turnstile/detail/wait/launch_wait.hpp>
#include <turnstile/detail/wait/wait_operation.hpp>
#include <turnstile/detail/wait/wait_request.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A budget of short cuts for each thread. A coroutine whose operation need not wait continues
// without suspending; a loop of such operations would keep its thread from all other work. Each
// short cut therefore consumes one unit, and when the budget is used up, one operation suspends and
// continues behind the work that the executor has queued. The budget is reset when a coroutine
// continues after a wait, because other work could run during the wait.
//
// Invariant: of 129 attempts on a thread without a reset in between, at least one is refused.
class coop_budget {
public:
    static constexpr unsigned size = 128;

    // Returns false, and begins a new budget, if nothing remains.
    static bool try_consume() noexcept
    {
        if (remaining_ == 0) {
            remaining_ = size;
            return false;
        }
        --remaining_;
        return true;
    }

    static void reset() noexcept { remaining_ = size; }

private:
    static inline constinit thread_local unsigned remaining_ = size;
};

// Recognises the completion tokens of a coroutine, use_awaitable and as_tuple(use_awaitable), and
// reports success and failure in the form of each: as a value or an exception, or as a tuple.
// start_wait() awaits the wait of such a token in a nested coroutine, which does not suspend if it
// is granted at once. All other tokens go through asio::async_initiate.

// The form for all other tokens.
template <class Token, class T>
struct coroutine_token {
    static constexpr bool is_coroutine = false;
};

template <class Executor, class T>
struct coroutine_token<asio::use_awaitable_t<Executor>, T> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = true;
    using executor_type = Executor;
    using value_type = T;

    static decltype(auto) success(typename nothrow_movable<T>::type&& value)
    {
        return nothrow_movable<T>::unwrap(std::move(value));
    }
    [[noreturn]] TURNSTILE_COLD static T failure(wait_decision why)
    {
        throw system_error(why.error());
    }
    static T result(wait_outcome<T>&& outcome)
    {
        if (outcome.error)
            throw system_error(outcome.error);
        return nothrow_movable<T>::unwrap(std::move(outcome.value));
    }
};

template <class Executor>
struct coroutine_token<asio::use_awaitable_t<Executor>, void> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = true;
    using executor_type = Executor;
    using value_type = void;

    static void success() noexcept {}
    static void result(const wait_outcome<void>& outcome)
    {
        if (outcome.error)
            throw system_error(outcome.error);
    }
    [[noreturn]] TURNSTILE_COLD static void failure(wait_decision why)
    {
        throw system_error(why.error());
    }
};

template <class Executor, class T>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, T> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = false;
    using executor_type = Executor;
    using value_type = std::tuple<error_code, T>;

    static value_type success(typename nothrow_movable<T>::type&& value)
    {
        return {error_code(), nothrow_movable<T>::unwrap(std::move(value))};
    }
    static value_type failure(wait_decision why) { return {why.error(), T()}; }
    static value_type result(wait_outcome<T>&& outcome)
    {
        return {outcome.error, nothrow_movable<T>::unwrap(std::move(outcome.value))};
    }
};

template <class Executor>
struct coroutine_token<asio::as_tuple_t<asio::use_awaitable_t<Executor>>, void> {
    static constexpr bool is_coroutine = true;
    static constexpr bool throws_errors = false;
    using executor_type = Executor;
    using value_type = std::tuple<error_code>;

    static value_type success() noexcept { return {}; }
    static value_type failure(wait_decision why) noexcept { return {why.error()}; }
    static value_type result(const wait_outcome<void>& outcome) noexcept { return {outcome.error}; }
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

// The exception of an outcome, likewise.
template <class TokenForm, class Request>
    requires(TokenForm::throws_errors&& Request::traits.reports_exception)
struct predicate_exception<TokenForm, Request> {
    explicit predicate_exception(Request& request) noexcept { request.keep_exception_in(thrown); }
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
auto wait_in_coroutine(cached_frame, Request request)
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
        if constexpr (concluding_request<Request>) {
            auto outcome = request.conclude_now();
            exception.rethrow();
            co_return TokenForm::result(std::move(outcome));
        } else if constexpr (gives_nothing)
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
        return wait_in_coroutine<token_form>(cached_frame(), std::move(request));
    else
        return asio::async_initiate<Token,
                                    typename signature_of<typename Request::result_type>::type>(
            initiate_wait<Request>(std::move(request)), token);
}

} // namespace turnstile::inline v0_1::detail
