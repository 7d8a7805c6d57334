// SPDX-License-Identifier: BSL-1.0
// A queue between asynchronous producers and consumers: bounded, unbounded, or a rendezvous.
// The pushes are here; all other operations, from `async_pop` to `close`, are in
// queue_operations.hpp, which `priority_queue` shares.
#pragma once

#include <turnstile/channel/detail/channel_capacity.hpp>
#include <turnstile/channel/detail/queue_store.hpp>
#include <turnstile/channel/queue_operations.hpp>
#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/core/threading.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

extern template class queue_state<thread_safe, queue_store>;
extern template class queue_state<strand_confined, queue_store>;

} // namespace detail

/// A queue of values of type T. Producers push, consumers pop; each side waits if it has to.
///
/// `basic_queue_operations` documents popping, reserving, joining and closing, and the rules on T,
/// on threads and on destruction.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_queue : public basic_queue_operations<T, Executor, Threading, detail::queue_store> {
    using base = basic_queue_operations<T, Executor, Threading, detail::queue_store>;

public:
    template <class Other>
    struct rebind_executor {
        using other = basic_queue<T, Other, Threading>;
    };

    /// Constructs a queue.
    ///
    /// @param executor The default executor of the completions.
    /// @param capacity The number of items that the queue has room for. 0 makes a rendezvous, where
    /// each push waits for a pop; `unbounded` sets no limit.
    /// @param on_full The effect of a push that finds no room; not `overflow::drop_worst`.
    /// @param order The item that is popped first.
    /// @par Exceptions
    /// `system_error` with `errc::invalid_argument` if `capacity` is negative or larger than the
    /// address space, or if `on_full` is `overflow::drop_worst`.
    template <std::integral Count>
    basic_queue(const Executor& executor, Count capacity, overflow on_full = overflow::wait,
                queue_order order = queue_order::fifo)
        : base(executor,
               detail::checked_queue_capacity(
                   capacity, "queue: capacity must be a number of items, or unbounded"),
               checked(on_full), order)
    {
    }

    /// The same with the executor of an execution context.
    template <detail::execution_context Context, std::integral Count>
    basic_queue(Context& context, Count capacity, overflow on_full = overflow::wait,
                queue_order order = queue_order::fifo)
        : basic_queue(context.get_executor(), capacity, on_full, order)
    {
    }

    /// Pushes a value; waits for room if the policy is `overflow::wait`.
    ///
    /// @par Completes when
    /// The item has entered the queue, after all earlier pushes and reservations. A policy other
    /// than `overflow::wait` completes at once.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// `errc::closed` if the queue is closed before the item enters; `errc::rejected` if it has no
    /// room and the policy is `overflow::reject`; `operation_aborted` if the push is cancelled, or
    /// the item is destroyed with the queue. After an error the item is not in the queue, and the
    /// value is destroyed. To keep a value until it is certain to enter, use `async_reserve`.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A push that is cancelled before its handler runs withdraws its item from the queue. It is
    /// too late to cancel, and the push succeeds, if its item has left the queue, if every item of
    /// the queue is granted to a pop, or if the push has dropped an item.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_push(T value, Token&& token = Token())
    {
        return this->start_push(std::move(value), {}, std::forward<Token>(token));
    }

    /// Pushes a value if the queue is open, has room, and no push or reservation waits. A full
    /// queue that drops items accepts it as well. Never waits.
    ///
    /// Returns whether the item was pushed. If it was not, `value` has not been moved from.
    ///
    /// @param ec Set to the error of `async_push` if waiting would not help; cleared otherwise.
    [[nodiscard]] bool try_push(T&& value, error_code& ec)
    {
        detail::queue_item_ref ignored;
        return this->try_push_item(this->state(), std::move(value), {}, ignored, ec);
    }
    /// The same with a copy of `value`.
    [[nodiscard]] bool try_push(const T& value, error_code& ec) requires std::copy_constructible<T>
    {
        return try_push(T(value), ec);
    }
    /// The same without the reason.
    [[nodiscard]] bool try_push(T&& value)
    {
        error_code ignored;
        return try_push(std::move(value), ignored);
    }
    /// The same with a copy of `value`, without the reason.
    [[nodiscard]] bool try_push(const T& value) requires std::copy_constructible<T>
    {
        return try_push(T(value));
    }

private:
    static overflow checked(overflow on_full)
    {
        if (on_full == overflow::drop_worst)
            detail::throw_error(errc::invalid_argument, "queue: on_full must not be drop_worst");
        return on_full;
    }
};

/// The usual queue: for any thread and any executor.
template <class T>
using queue = basic_queue<T>;

namespace local {

/// A queue for one strand: no atomics, no locks.
template <class T>
using queue = basic_queue<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
