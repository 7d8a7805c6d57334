// SPDX-License-Identifier: BSL-1.0
// The sending end of a queue. `sender()` of `queue` and `priority_queue` returns it.
#pragma once

#include <turnstile/channel/detail/queue_end.hpp>
#include <turnstile/channel/detail/queue_request.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A sending end of a queue. The queue counts its senders, and is closed when the last one is gone:
/// the remaining items can still be popped, then pops fail with `errc::closed`. Copyable and
/// movable; the type is `sender_type` of the queue.
///
/// Pushes and reservations that wait when the last sender goes are not refused: they are granted in
/// their turn, and pops wait for their items. Later pushes and reservations, also of the queue
/// itself, fail with `errc::closed`. In this a queue without senders differs from one after
/// `close()`, which refuses the pushes that wait.
///
/// An empty handle, which was default constructed, moved from or released, has no queue. Its
/// `try_` functions fail with `errc::invalid_argument`, and its other functions throw
/// `system_error` with that code; nothing is started then.
///
/// @par Thread safety
/// As `std::shared_ptr`: with `thread_safe`, different handles of one queue may be used, copied and
/// destroyed on different threads at the same time, and so may the const functions of one handle.
/// With `strand_confined`, all calls must come from the strand of the queue.
/// @par Destruction
/// The handle is released. It may outlive the queue: operations that are outstanding when the queue
/// is destroyed, and all later ones, fail with `operation_aborted`. Operations of a handle do not
/// need the handle: it may be released while they are outstanding.
template <class Queue>
class queue_sender
    : public detail::queue_end<typename Queue::executor_type, typename Queue::state_type,
                               detail::queue_sender_role> {
    using base = detail::queue_end<typename Queue::executor_type, typename Queue::state_type,
                                   detail::queue_sender_role>;
    using origin_type = typename base::origin_type;
    static constexpr bool has_priorities = !std::is_empty_v<typename Queue::priority_type>;

public:
    using value_type = typename Queue::value_type;
    using typename base::executor_type;
    /// The priority of an item; an empty type for `queue`.
    using priority_type = typename Queue::priority_type;
    /// `void` for `queue`, `queue_item_id` for `priority_queue`.
    using push_result_type = typename Queue::push_result_type;
    /// The result of `try_push`: `bool` for `queue`, `queue_item_id` for `priority_queue`.
    using try_push_result_type =
        std::conditional_t<std::is_void_v<push_result_type>, bool, push_result_type>;
    /// Places in the queue.
    using reservation_type = typename Queue::reservation_type;

    /// An empty handle.
    queue_sender() noexcept = default;

    // ----------------------------------------------------------------------- push ----

    /// Pushes a value; waits for room if the policy is `overflow::wait`.
    ///
    /// @par Completes when
    /// As `async_push` of the queue.
    /// @par Completion signature
    /// `void(error_code)`; for a `priority_queue`, `void(error_code, queue_item_id)`
    /// @par Errors
    /// The errors of `async_push` of the queue; `operation_aborted` after the queue is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// As `async_push` of the queue.
    /// @par Fairness
    /// FIFO, together with all pushes and reservations of the queue.
    template <token_for<push_result_type> Token = default_token_t<executor_type>>
    auto async_push(value_type value, Token&& token = Token()) const requires(!has_priorities)
    {
        return start_push(std::move(value), priority_type(), std::forward<Token>(token));
    }
    /// The form for a `priority_queue`, with the priority of the item.
    template <token_for<push_result_type> Token = default_token_t<executor_type>>
    auto async_push(value_type value, priority_type priority, Token&& token = Token()) const
        requires(has_priorities)
    {
        return start_push(std::move(value), std::move(priority), std::forward<Token>(token));
    }

    /// Pushes a value as `try_push` of the queue does. Never waits.
    ///
    /// Returns whether the item was pushed. If it was not, `value` has not been moved from.
    ///
    /// @param ec Set to the error of `async_push` if waiting would not help, and to
    /// `errc::invalid_argument` if the handle is empty; cleared otherwise.
    [[nodiscard]] try_push_result_type try_push(value_type&& value, error_code& ec) const
        requires(!has_priorities)
    {
        return push_now(std::move(value), priority_type(), ec);
    }
    /// The same with a copy of `value`.
    [[nodiscard]] try_push_result_type try_push(const value_type& value, error_code& ec) const
        requires(!has_priorities && std::copy_constructible<value_type>)
    {
        return try_push(value_type(value), ec);
    }
    /// The same without the reason.
    [[nodiscard]] try_push_result_type try_push(value_type&& value) const requires(!has_priorities)
    {
        error_code ignored;
        return try_push(std::move(value), ignored);
    }
    /// The same with a copy of `value`, without the reason.
    [[nodiscard]] try_push_result_type try_push(const value_type& value) const
        requires(!has_priorities && std::copy_constructible<value_type>)
    {
        return try_push(value_type(value));
    }

    /// The form for a `priority_queue`. Returns the id of the item, which is empty if the item was
    /// not pushed.
    [[nodiscard]] try_push_result_type try_push(value_type&& value, priority_type priority,
                                                error_code& ec) const requires(has_priorities)
    {
        return push_now(std::move(value), std::move(priority), ec);
    }
    /// The same with a copy of `value`.
    [[nodiscard]] try_push_result_type try_push(const value_type& value, priority_type priority,
                                                error_code& ec) const
        requires(has_priorities&& std::copy_constructible<value_type>)
    {
        return try_push(value_type(value), std::move(priority), ec);
    }
    /// The same without the reason.
    [[nodiscard]] try_push_result_type try_push(value_type&& value, priority_type priority) const
        requires(has_priorities)
    {
        error_code ignored;
        return try_push(std::move(value), std::move(priority), ignored);
    }
    /// The same with a copy of `value`, without the reason.
    [[nodiscard]] try_push_result_type try_push(const value_type& value,
                                                priority_type priority) const
        requires(has_priorities&& std::copy_constructible<value_type>)
    {
        return try_push(value_type(value), std::move(priority));
    }

    // -------------------------------------------------------------------- reserve ----

    /// Waits for n places in the queue and holds them for values that are pushed later. A
    /// reservation may be filled after its sender is gone.
    ///
    /// @par Completes when
    /// As `async_reserve` of the queue.
    /// @par Completion signature
    /// `void(error_code, reservation_type)`
    /// @par Errors
    /// The errors of `async_reserve` of the queue; `operation_aborted` after the queue is
    /// destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds no place.
    /// @par Fairness
    /// FIFO, together with all pushes and reservations of the queue.
    template <token_for<reservation_type> Token = default_token_t<executor_type>>
    auto async_reserve(std::size_t n, Token&& token = Token()) const
    {
        return detail::start_wait(
            detail::queue_reserve_request<Queue, origin_type>{{this->origin()}, n},
            std::forward<Token>(token));
    }
    /// Equivalent to `async_reserve(1, token)`.
    template <token_for<reservation_type> Token = default_token_t<executor_type>>
    auto async_reserve(Token&& token = Token()) const
    {
        return async_reserve(1, std::forward<Token>(token));
    }

    /// Returns n places as `try_reserve` of the queue does, or an empty reservation. Never waits.
    ///
    /// @param ec Set to the error of `async_reserve` if waiting would not help, and to
    /// `errc::invalid_argument` if the handle is empty; cleared otherwise.
    [[nodiscard]] reservation_type try_reserve(std::size_t n, error_code& ec) const noexcept
    {
        auto* state = this->checked();
        if (state)
            return Queue::try_reserve_in(*state, n, ec);
        ec = errc::invalid_argument;
        return reservation_type();
    }
    /// The same without the reason.
    [[nodiscard]] reservation_type try_reserve(std::size_t n = 1) const noexcept
    {
        error_code ignored;
        return try_reserve(n, ignored);
    }

    // ---------------------------------------------------------------------- state ----
    // The numbers are hints: they may be outdated as soon as they are returned.

    /// Returns whether the queue is closed; a push would fail.
    [[nodiscard]] bool is_closed() const { return this->state().is_closed(); }
    /// The number of free places; see `free` of the queue.
    [[nodiscard]] std::size_t free() const { return this->state().free_places(); }
    /// The number of pushes and reservations that wait at the queue.
    [[nodiscard]] std::size_t waiting() const { return this->state().waiting_pushes(); }

private:
    friend Queue;
    using base::base;

    template <class Token>
    auto start_push(value_type&& value, priority_type&& priority, Token&& token) const
    {
        return detail::start_wait(
            detail::queue_push_request<Queue, origin_type>{
                {this->origin()},
                std::move(priority),
                Queue::state_type::to_stored(std::move(value))},
            std::forward<Token>(token));
    }

    try_push_result_type push_now(value_type&& value, priority_type&& priority,
                                  error_code& ec) const
    {
        detail::queue_item_ref item;
        auto* state = this->checked();
        bool pushed = false;
        if (state)
            pushed = Queue::try_push_item(*state, std::move(value), std::move(priority), item, ec);
        else
            ec = errc::invalid_argument;
        if constexpr (std::is_void_v<push_result_type>)
            return pushed;
        else
            return Queue::push_result(item);
    }
};

} // namespace turnstile::inline v0_1
