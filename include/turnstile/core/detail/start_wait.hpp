#pragma once

// The one initiation, through which every async_ function of the library goes.
//
// A primitive describes a wait with an Ask, a small copyable object:
//   executor_type, threading, result_type   the object's executor and policy; the value
//   waiter_type                             waiter, or a struct derived from it (the need)
//   refundable                              whether dropping the result gives back what it took
//   get_executor(), state()                 the object's executor and its wait_state
//   verdict try_now()                       the fast path: no lock, no allocation
//   void give_back()                        undoes a granted try_now()
//   void prepare(waiter_type&)              writes the need into the queued node
//   result_type take_now()                  the result after a granted try_now()
//   result_type take(waiter_type&)          the result of a granted waiter

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/buffer_allocator.hpp>
#include <turnstile/core/detail/coroutine_token.hpp>
#include <turnstile/core/detail/outcome.hpp>
#include <turnstile/core/detail/shortcut_budget.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/detail/wait_operation.hpp>

#include <boost/asio/associated_allocator.hpp>
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
#    include <boost/asio/associated_immediate_executor.hpp>
#endif
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

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

// The operation lives in memory from the handler's associated allocator.
struct handler_memory {
    static constexpr passing result = passing::arguments;

    template <class Handler>
    static auto allocator_for(const Handler& handler) noexcept
    {
        return asio::get_associated_allocator(handler);
    }
};

template <class Ask, class Memory = handler_memory>
class initiate_wait {
public:
    using executor_type = typename Ask::executor_type;

    explicit initiate_wait(Ask ask, Memory memory = {}) noexcept
        : ask_(std::move(ask)), memory_(memory)
    {
    }

    executor_type get_executor() const noexcept { return ask_.get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler)
    {
        using handler_type = std::decay_t<Handler>;
        const verdict now = ask_.try_now();
        if constexpr (has_own_immediate_executor<handler_type, executor_type>) {
            if (!now.must_wait())
                return complete_immediately(std::forward<Handler>(handler), now);
        }

        auto allocator = memory_.allocator_for(handler);
        using operation = wait_operation<Ask, handler_type, decltype(allocator), Memory::result>;
        auto op = [&] {
            grant_guard undo{ask_, now.is_granted()};
            auto made = operation::make(ask_, std::forward<Handler>(handler), allocator);
            undo.armed = false;
            return made;
        }();
        if (now.is_granted())
            op->grant();
        else if (!now.must_wait())
            op->fail(now.error());
        op->arm();
        operation::start(std::move(op));
    }

private:
    struct grant_guard {
        Ask& ask;
        bool armed;
        ~grant_guard()
        {
            if (armed)
                ask.give_back();
        }
    };

#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
    template <class Handler>
    void complete_immediately(Handler&& handler, verdict now)
    {
        outcome<typename Ask::result_type> result{now.error()};
        if constexpr (!std::is_void_v<typename Ask::result_type>) {
            if (now.is_granted())
                result.value = ask_.take_now();
        }
        auto executor = asio::get_associated_immediate_executor(handler, get_executor());
        asio::dispatch(executor,
                       [h = std::forward<Handler>(handler), r = std::move(result)]() mutable {
                           complete_with<Memory::result>(std::move(h), std::move(r));
                       });
    }
#endif

    Ask ask_;
    [[no_unique_address]] Memory memory_;
};

// The waiting operation of a coroutine lives in the coroutine's own frame.
template <class Ask, class Executor>
class frame_memory {
    // Asio's handler for a suspended coroutine is a pointer or two; should a version's be
    // larger than this, the operation goes to the heap.
    struct suspended_coroutine {
        using executor_type = Executor;
        void operator()(outcome<typename Ask::result_type>) noexcept {}
        executor_type get_executor() const noexcept;
        void* state[4];
    };
    static constexpr std::size_t room = sizeof(
        wait_operation<Ask, suspended_coroutine, buffer_allocator<std::byte, 1>, passing::packed>);
    struct buffer {
        alignas(std::max_align_t) std::byte bytes[room];
    };

public:
    frame_memory() = default;
    frame_memory(const frame_memory&) = delete;
    frame_memory& operator=(const frame_memory&) = delete;

    struct reference {
        static constexpr passing result = passing::packed;

        buffer* where;
        template <class Handler>
        auto allocator_for(const Handler&) const noexcept
        {
            return buffer_allocator<std::byte, room>(where->bytes);
        }
    };
    reference get() noexcept { return {&buffer_}; }

private:
    buffer buffer_;
};

// A coroutine that need not wait does not suspend: it tries first. Where dropping the result
// would lose something, only a coroutine that nobody can cancel takes this short cut.
template <class Shape, class Ask>
auto wait_in_coroutine(Ask ask)
    -> asio::awaitable<typename Shape::value_type, typename Shape::executor_type>
{
    bool may_skip = true;
    if constexpr (!Ask::refundable) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        may_skip = !state.slot().is_connected();
    }

    if (may_skip && shortcut_budget::spend()) {
        const verdict now = ask.try_now();
        if (now.is_granted()) {
            if constexpr (std::is_void_v<typename Ask::result_type>)
                co_return Shape::result({});
            else
                co_return Shape::result({{}, ask.take_now()});
        }
        if (!now.must_wait())
            co_return Shape::result({now.error()});
    }

    using signature = void(outcome<typename Ask::result_type>);
    frame_memory<Ask, typename Shape::executor_type> memory;
    co_return Shape::result(co_await asio::async_initiate<const asio::deferred_t&, signature>(
        initiate_wait(std::move(ask), memory.get()), asio::deferred));
}

template <class Ask, class Token>
auto start_wait(Ask ask, Token&& token)
{
    using shape = coroutine_token<std::decay_t<Token>, typename Ask::result_type>;
    if constexpr (shape::is_coroutine)
        return wait_in_coroutine<shape>(std::move(ask));
    else
        return asio::async_initiate<Token, typename signature_of<typename Ask::result_type>::type>(
            initiate_wait<Ask>(std::move(ask)), token);
}

} // namespace turnstile::detail
