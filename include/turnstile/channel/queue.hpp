// SPDX-License-Identifier: BSL-1.0
// A queue between asynchronous producers and consumers: bounded, unbounded, or a rendezvous.
#pragma once

#include <turnstile/channel/detail/list_store.hpp>
#include <turnstile/channel/detail/queue_base.hpp>
#include <turnstile/core/threading.hpp>

namespace turnstile::inline v0_1 {
namespace detail {

extern template class queue_state<thread_safe, list_store>;
extern template class queue_state<strand_confined, list_store>;

} // namespace detail

/// Items on their way from those who push to those who pop.
///
/// What pops, closes, joins and reserves is the same for all queues, and described with
/// `detail::item_queue`.
///
/// T can be moved; it need be neither copyable nor default constructible. Its values are neither
/// moved nor destroyed under the internal lock, but for a move that does not throw. If the move
/// of a value throws as it is handed to whoever popped it, that is where the exception goes, and
/// the value is lost. So does one of the default constructor, where there is an error and no value.
///
/// Fairness: strict FIFO among those who push, and among those who pop.
/// Destruction: every waiter completes with `operation_aborted`, and items are destroyed. A push
/// that has not completed succeeds exactly if its item has left the queue before. A reservation
/// may outlive the queue.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_queue : public detail::item_queue<T, Executor, Threading, detail::list_store> {
    using base = detail::item_queue<T, Executor, Threading, detail::list_store>;

public:
    template <class Other>
    struct rebind_executor {
        using other = basic_queue<T, Other, Threading>;
    };

    /// A queue with room for `capacity` items: 0 makes it a rendezvous, where each push waits for
    /// a pop, and `unbounded` makes it take any number. Throws `errc::invalid_argument` for
    /// `overflow::drop_worst`.
    basic_queue(const Executor& executor, std::size_t capacity, overflow on_full = overflow::wait,
                order o = order::fifo)
        : base(executor, capacity, checked(on_full), o)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    basic_queue(Context& context, std::size_t capacity, overflow on_full = overflow::wait,
                order o = order::fifo)
        : basic_queue(context.get_executor(), capacity, on_full, o)
    {
    }

    /// Puts a value into the queue, waiting for room if that is the policy.
    ///
    /// Completes when: the value has entered, after everyone who came before; at once if there
    /// is room, or the policy is not to wait.
    /// Signature: `void(error_code)`.
    /// Errors: `errc::closed` if the queue is closed, now or while it waits; `errc::rejected` if
    /// there is no room and the policy is `overflow::reject`; `operation_aborted` if cancelled,
    /// or if the value was destroyed with the queue, before a pop took it. Then the value is not
    /// in the queue, and has been destroyed; to keep it until it is certain to enter, use
    /// `async_reserve`.
    /// Executor: the handler's associated executor, by default the queue's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, the push withdraws its value from the
    /// queue. It is too late to cancel, and the push succeeds, if the value has been popped, if
    /// every item of the queue is on its way to a pop, or if the push has dropped an item.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_push(T value, Token&& token = Token())
    {
        return this->push(std::move(value), {}, std::forward<Token>(token));
    }

    /// Puts a value into the queue if it has room, is not closed, and nobody waits to push; never
    /// waits. A full queue that drops items takes it, too. If false, the value has not been moved
    /// from, and `ec` is set if waiting would not help: to what `async_push` would say. Thread
    /// safety: as the policy says.
    [[nodiscard]] bool try_push(T&& value, error_code& ec)
    {
        detail::item_ticket ticket;
        return this->try_push_with(std::move(value), {}, ticket, ec);
    }
    /// The same with a copy.
    [[nodiscard]] bool try_push(const T& value, error_code& ec) requires std::copy_constructible<T>
    {
        return try_push(T(value), ec);
    }
    /// The same, without saying why it was not pushed.
    [[nodiscard]] bool try_push(T&& value)
    {
        error_code ignored;
        return try_push(std::move(value), ignored);
    }
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

/// The usual queue: any thread, any executor.
template <class T>
using queue = basic_queue<T>;

namespace local {

/// A queue for one strand: no atomics, no locks.
template <class T>
using queue = basic_queue<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
