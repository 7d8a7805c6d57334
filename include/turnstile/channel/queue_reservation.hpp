// SPDX-License-Identifier: BSL-1.0
// Places in a queue that are held before their values exist. `async_reserve` and `try_reserve` of
// `queue` and `priority_queue` return it.
#pragma once

#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/core/error.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// One or several places in a queue. Each can be filled without waiting; the places that are left
/// are given back when the reservation is destroyed. Movable, not copyable.
///
/// The type is `reservation_type` of the queue.
///
/// @par Thread safety
/// One reservation must not be used by several threads at the same time.
/// @par Destruction
/// Gives the remaining places back. A reservation may outlive its queue; `push` then reports
/// `errc::closed`.
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

    /// Takes over the places of `other`.
    queue_reservation(queue_reservation&& other) noexcept
        : state_(std::move(other.state_)), places_(std::exchange(other.places_, 0))
    {
    }
    /// Gives back the places that it holds, then takes over the places of `other`.
    queue_reservation& operator=(queue_reservation&& other) noexcept
    {
        queue_reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~queue_reservation() { release(); }

    void swap(queue_reservation& other) noexcept
    {
        state_.swap(other.state_);
        std::swap(places_, other.places_);
    }

    /// Returns whether it holds a place.
    explicit operator bool() const noexcept { return places_ != 0; }
    /// The number of places that it still holds.
    [[nodiscard]] std::size_t size() const noexcept { return places_; }

    /// Enters the value without waiting, and uses one place. Places can be filled after `close()`
    /// as well: pops wait for their items.
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

    /// Gives the remaining places back. Does nothing if no place is held.
    void release() noexcept
    {
        if (state_)
            std::exchange(state_, nullptr)->release_reservation(std::exchange(places_, 0));
    }

private:
    friend Queue;
    using state_type = typename Queue::state_type;
    queue_reservation(state_type& state, std::size_t places) noexcept
        : state_(&state), places_(places)
    {
    }

    detail::queue_item_ref fill(value_type&& value, priority_type&& priority, error_code& ec)
    {
        detail::queue_item_ref item;
        if (!state_)
            ec = errc::invalid_argument;
        else if (!state_->fill_reservation(priority, std::move(value), item))
            ec = errc::closed;
        else {
            ec = {};
            if (--places_ == 0)
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

    boost::intrusive_ptr<state_type> state_; // null if it holds no place
    std::size_t places_ = 0;
};

} // namespace turnstile::inline v0_1
