// SPDX-License-Identifier: BSL-1.0
// A queue that serves the lowest priority first, and among equals the oldest.
#pragma once

#include <turnstile/channel/detail/priority_store.hpp>
#include <turnstile/channel/detail/queue_base.hpp>
#include <turnstile/channel/detail/queue_state_impl.hpp>
#include <turnstile/core/threading.hpp>

#include <functional>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1 {

/// Names an item of a `priority_queue`, whether it is still there or not. Small, copyable. Not
/// to be used with another queue than its own.
class item_handle {
public:
    /// Names nothing.
    item_handle() noexcept = default;
    explicit item_handle(const detail::item_ticket& ticket) noexcept : ticket_(ticket) {}

    /// Whether it names an item.
    explicit operator bool() const noexcept { return ticket_.node != nullptr; }

private:
    template <class, class, class, class, class>
    friend class basic_priority_queue;
    detail::item_ticket ticket_;
};

/// A queue of values with priorities: the lowest, by Compare, is popped first, and of several
/// equal ones the one that was pushed first. Pushing, popping and changing a priority take time
/// O(log n). Memory is kept for reuse until the queue is destroyed.
///
/// Everything but the pushes is as with `queue`. Compare is called under the internal lock: it
/// must not throw, nor use the queue. Priority can be moved and swapped without throwing.
///
/// Fairness: strict FIFO among those who push, and among those who pop.
/// Destruction: every waiter completes with `operation_aborted`, and items are destroyed. A push
/// that has not completed succeeds exactly if its item has left the queue before. A reservation
/// may outlive the queue.
template <class T, class Priority = int, class Compare = std::less<Priority>,
          class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_priority_queue
    : public detail::item_queue<T, Executor, Threading,
                                detail::priority_store<Priority, Compare, item_handle>> {
    using base = detail::item_queue<T, Executor, Threading,
                                    detail::priority_store<Priority, Compare, item_handle>>;

public:
    template <class Other>
    struct rebind_executor {
        using other = basic_priority_queue<T, Priority, Compare, Other, Threading>;
    };

    /// A queue with room for `capacity` items: 0 makes it a rendezvous, `unbounded` makes it take
    /// any number. Throws `errc::invalid_argument` for `overflow::drop_oldest`.
    basic_priority_queue(const Executor& executor, std::size_t capacity,
                         overflow on_full = overflow::wait, Compare compare = Compare())
        : base(executor, capacity, checked(on_full), std::move(compare))
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    basic_priority_queue(Context& context, std::size_t capacity, overflow on_full = overflow::wait,
                         Compare compare = Compare())
        : basic_priority_queue(context.get_executor(), capacity, on_full, std::move(compare))
    {
    }

    /// Puts a value into the queue, waiting for room if that is the policy.
    ///
    /// Completes when: the value has entered, after everyone who came before, whatever their
    /// priorities; at once if there is room, or the policy is not to wait.
    /// Signature: `void(error_code, item_handle)`.
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
    template <token_for<item_handle> Token = default_token_t<Executor>>
    auto async_push(T value, Priority priority, Token&& token = Token())
    {
        return this->push(std::move(value), std::move(priority), std::forward<Token>(token));
    }

    /// Puts a value into the queue if it has room, is not closed, and nobody waits to push; never
    /// waits. A full queue that drops items takes it, too. If the handle is empty, the value has
    /// not been moved from, and `ec` is set if waiting would not help: to what `async_push` would
    /// say. Thread safety: as the policy says.
    [[nodiscard]] item_handle try_push(T&& value, Priority priority, error_code& ec)
    {
        detail::item_ticket ticket;
        this->try_push_with(std::move(value), std::move(priority), ticket, ec);
        return item_handle(ticket);
    }
    /// The same with a copy.
    [[nodiscard]] item_handle try_push(const T& value, Priority priority,
                                       error_code& ec) requires std::copy_constructible<T>
    {
        return try_push(T(value), std::move(priority), ec);
    }
    /// The same, without saying why it was not pushed.
    [[nodiscard]] item_handle try_push(T&& value, Priority priority)
    {
        error_code ignored;
        return try_push(std::move(value), std::move(priority), ignored);
    }
    [[nodiscard]] item_handle try_push(const T& value,
                                       Priority priority) requires std::copy_constructible<T>
    {
        return try_push(T(value), std::move(priority));
    }

    /// Gives an item another priority. Among its new equals it has the place that it would have
    /// had with that priority from the start. False, and no change, if the item has left the
    /// queue: as the handler of the pop that takes it is about to run. Thread safety: as the
    /// policy says.
    [[nodiscard]] bool change_priority(const item_handle& item, Priority priority) noexcept
    {
        return item && this->state().change(item.ticket_, priority);
    }

    /// Takes an item out, wherever in the queue it is; it counts as done, and somebody who waits
    /// to push gets its place. Nothing, and no change, if the item has left the queue, or if as
    /// many pops as there are items are on their way to their handlers. Thread safety: as the
    /// policy says.
    std::optional<T> erase(const item_handle& item)
    {
        std::optional<typename base::state_type::stored> taken;
        if (item)
            this->state().erase(item.ticket_, taken);
        if (!taken)
            return std::nullopt;
        return detail::nothrow_movable<std::optional<T>>::unwrap(std::move(*taken));
    }

private:
    static overflow checked(overflow on_full)
    {
        if (on_full == overflow::drop_oldest)
            detail::throw_error(errc::invalid_argument,
                                "priority_queue: on_full must not be drop_oldest");
        return on_full;
    }
};

/// The usual priority queue: any thread, any executor.
template <class T, class Priority = int, class Compare = std::less<Priority>>
using priority_queue = basic_priority_queue<T, Priority, Compare>;

namespace local {

/// A priority queue for one strand: no atomics, no locks.
template <class T, class Priority = int, class Compare = std::less<Priority>>
using priority_queue =
    basic_priority_queue<T, Priority, Compare, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
