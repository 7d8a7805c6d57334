// SPDX-License-Identifier: BSL-1.0
// A queue that pops the item with the lowest priority first and, among equal priorities, the
// oldest. The operations that depend on the priority are here; all others, from `async_pop` to
// `close`, are in queue_operations.hpp, which `queue` shares.
#pragma once

#include <turnstile/channel/detail/channel_capacity.hpp>
#include <turnstile/channel/detail/priority_queue_store.hpp>
#include <turnstile/channel/detail/queue_state_items.hpp>
#include <turnstile/channel/detail/queue_state_waiters.hpp>
#include <turnstile/channel/queue_operations.hpp>
#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/core/threading.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1 {

/// Identifies an item of a `priority_queue`, even after the item has left the queue. Small and
/// copyable. It must be used only with the queue that it comes from, and not after the queue is
/// destroyed.
class queue_item_id {
public:
    /// Identifies no item.
    queue_item_id() noexcept = default;

    /// Returns whether it identifies an item.
    explicit operator bool() const noexcept { return item_.node != nullptr; }

private:
    template <class, class, class, class>
    friend class basic_queue_operations;
    template <class, class, class, class, class>
    friend class basic_priority_queue;
    explicit queue_item_id(const detail::queue_item_ref& item) noexcept : item_(item) {}

    detail::queue_item_ref item_;
};

/// A queue of values with priorities. The item with the lowest priority, by Compare, is popped
/// first; of several equal ones the one that was pushed first. Pushing, popping, erasing and
/// changing a priority take O(log n) time. The memory of items is reused, and freed when the queue
/// is destroyed.
///
/// Compare is called under the internal lock: it must neither throw nor use the queue. Priority
/// must be movable and swappable without throwing.
///
/// `basic_queue_operations` documents popping, reserving, joining and closing, and the rules on T,
/// on threads and on destruction.
template <class T, class Priority = int, class Compare = std::less<Priority>,
          class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_priority_queue
    : public basic_queue_operations<
          T, Executor, Threading, detail::priority_queue_store<Priority, Compare, queue_item_id>> {
    using base =
        basic_queue_operations<T, Executor, Threading,
                               detail::priority_queue_store<Priority, Compare, queue_item_id>>;

public:
    template <class Other>
    struct rebind_executor {
        using other = basic_priority_queue<T, Priority, Compare, Other, Threading>;
    };

    /// Constructs a queue.
    ///
    /// @param executor The default executor of the completions.
    /// @param capacity The number of items that the queue has room for. 0 makes a rendezvous, where
    /// each push waits for a pop; `unbounded` sets no limit.
    /// @param on_full The effect of a push that finds no room; not `overflow::drop_oldest`.
    /// @param compare The order of the priorities.
    /// @par Exceptions
    /// `system_error` with `errc::invalid_argument` if `capacity` is negative or larger than the
    /// address space, or if `on_full` is `overflow::drop_oldest`.
    template <std::integral Count>
    basic_priority_queue(const Executor& executor, Count capacity,
                         overflow on_full = overflow::wait, Compare compare = Compare())
        : base(executor,
               detail::checked_queue_capacity(
                   capacity, "priority_queue: capacity must be a number of items, or unbounded"),
               checked(on_full), std::move(compare))
    {
    }

    /// The same with the executor of an execution context.
    template <detail::execution_context Context, std::integral Count>
    basic_priority_queue(Context& context, Count capacity, overflow on_full = overflow::wait,
                         Compare compare = Compare())
        : basic_priority_queue(context.get_executor(), capacity, on_full, std::move(compare))
    {
    }

    /// Pushes a value; waits for room if the policy is `overflow::wait`.
    ///
    /// @par Completes when
    /// The item has entered the queue, after all earlier pushes and reservations, whatever their
    /// priorities. A policy other than `overflow::wait` completes at once.
    /// @par Completion signature
    /// `void(error_code, queue_item_id)`
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
    template <token_for<queue_item_id> Token = default_token_t<Executor>>
    auto async_push(T value, Priority priority, Token&& token = Token())
    {
        return this->start_push(std::move(value), std::move(priority), std::forward<Token>(token));
    }

    /// Pushes a value if the queue is open, has room, and no push or reservation waits. A full
    /// queue that drops items accepts it as well. Never waits.
    ///
    /// Returns the id of the item. If the id is empty, the item was not pushed, and `value` has not
    /// been moved from.
    ///
    /// @param ec Set to the error of `async_push` if waiting would not help; cleared otherwise.
    [[nodiscard]] queue_item_id try_push(T&& value, Priority priority, error_code& ec)
    {
        detail::queue_item_ref item;
        this->try_push_item(this->state(), std::move(value), std::move(priority), item, ec);
        return queue_item_id(item);
    }
    /// The same with a copy of `value`.
    [[nodiscard]] queue_item_id try_push(const T& value, Priority priority,
                                         error_code& ec) requires std::copy_constructible<T>
    {
        return try_push(T(value), std::move(priority), ec);
    }
    /// The same without the reason.
    [[nodiscard]] queue_item_id try_push(T&& value, Priority priority)
    {
        error_code ignored;
        return try_push(std::move(value), std::move(priority), ignored);
    }
    /// The same with a copy of `value`, without the reason.
    [[nodiscard]] queue_item_id try_push(const T& value,
                                         Priority priority) requires std::copy_constructible<T>
    {
        return try_push(T(value), std::move(priority));
    }

    /// Changes the priority of an item. Among equal priorities, the item is ordered by the time at
    /// which it was pushed.
    ///
    /// Returns false, and changes nothing, if the item has left the queue. An item leaves when the
    /// handler of the pop that takes it is about to run.
    [[nodiscard]] bool change_priority(const queue_item_id& item, Priority priority) noexcept
    {
        return item && this->state().change_priority(item.item_, priority);
    }

    /// Takes an item out of the queue, wherever it is. The item counts as done, and its place
    /// becomes free.
    ///
    /// Returns an empty optional, and changes nothing, if the item has left the queue or every item
    /// in the queue is granted to a pop.
    std::optional<T> erase(const queue_item_id& item)
    {
        std::optional<typename base::state_type::stored_type> taken;
        if (item)
            this->state().erase(item.item_, taken);
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

/// The usual priority queue: for any thread and any executor.
template <class T, class Priority = int, class Compare = std::less<Priority>>
using priority_queue = basic_priority_queue<T, Priority, Compare>;

namespace local {

/// A priority queue for one strand: no atomics, no locks.
template <class T, class Priority = int, class Compare = std::less<Priority>>
using priority_queue =
    basic_priority_queue<T, Priority, Compare, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
