// SPDX-License-Identifier: BSL-1.0
// A place in a queue that is held before its value exists. `async_reserve` and `try_reserve` of
// `queue` and `priority_queue` return it.
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/core/error.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// One place in a queue. It can be filled without waiting, and is given back when the reservation
/// is destroyed. Movable, not copyable.
///
/// The type is `reservation_type` of the queue.
///
/// @par Thread safety
/// One reservation must not be used by several threads at the same time.
/// @par Destruction
/// Gives the place back. A reservation may outlive its queue; `push` then reports `errc::closed`.
template <class Queue>
class [[nodiscard]] queue_reservation {
public:
    using value_type = typename Queue::value_type;
    /// The priority of an item; an empty type for `queue`.
    using priority_type = typename Queue::priority_type;
    /// `void` for `queue`, `queue_item_id` for `priority_queue`.
    using push_result_type = typename Queue::push_result_type;

    /// Holds no place.
    queue_reservation() noexcept = default;

    queue_reservation(queue_reservation&& other) noexcept = default;
    /// Gives back the place that it holds, then takes over the place of `other`.
    queue_reservation& operator=(queue_reservation&& other) noexcept
    {
        queue_reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~queue_reservation() { release(); }

    void swap(queue_reservation& other) noexcept { state_.swap(other.state_); }

    /// Returns whether it holds a place.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Enters the value without waiting. Afterwards the reservation holds no place. It can be
    /// filled after `close()` as well: pops wait for its item.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if it holds no place; `errc::closed` after
    /// `close(close_mode::discard)` or the destruction of the queue. After an error the value has
    /// not been moved from, and a place that was held is still held.
    /// @par Exceptions
    /// The exceptions of the move constructor of the value, and `std::bad_alloc`.
    push_result_type push(value_type&& value,
                          error_code& ec) requires std::is_empty_v<priority_type>
    {
        return Queue::push_result(fill(std::move(value), priority_type(), ec));
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    push_result_type push(value_type&& value) requires std::is_empty_v<priority_type>
    {
        return Queue::push_result(fill(std::move(value), priority_type()));
    }
    /// Equivalent to `push(value_type(value))`.
    push_result_type push(const value_type& value) requires std::is_empty_v<priority_type>
    {
        return push(value_type(value));
    }

    /// The form for a `priority_queue`: enters the value with a priority and returns the id of the
    /// item. Errors and exceptions are the same.
    push_result_type push(value_type&& value, priority_type priority,
                          error_code& ec) requires(!std::is_empty_v<priority_type>)
    {
        return Queue::push_result(fill(std::move(value), std::move(priority), ec));
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    push_result_type push(value_type&& value,
                          priority_type priority) requires(!std::is_empty_v<priority_type>)
    {
        return Queue::push_result(fill(std::move(value), std::move(priority)));
    }
    /// Equivalent to `push(value_type(value), priority)`.
    push_result_type push(const value_type& value,
                          priority_type priority) requires(!std::is_empty_v<priority_type>)
    {
        return push(value_type(value), std::move(priority));
    }

    /// Gives the place back. Does nothing if no place is held.
    void release() noexcept
    {
        if (state_)
            std::exchange(state_, nullptr)->release_reservation();
    }

private:
    friend Queue;
    using state_type = typename Queue::state_type;
    explicit queue_reservation(state_type& state) noexcept : state_(&state) {}

    detail::queue_item_ref fill(value_type&& value, priority_type&& priority, error_code& ec)
    {
        detail::queue_item_ref item;
        if (!state_)
            ec = errc::invalid_argument;
        else if (!state_->fill_reservation(priority, std::move(value), item))
            ec = errc::closed;
        else {
            ec = {};
            state_ = nullptr;
        }
        return item;
    }
    detail::queue_item_ref fill(value_type&& value, priority_type&& priority)
    {
        error_code ec;
        const detail::queue_item_ref item = fill(std::move(value), std::move(priority), ec);
        detail::throw_if(ec, "queue_reservation::push");
        return item;
    }

    boost::intrusive_ptr<state_type> state_;
};

} // namespace turnstile::inline v0_1
