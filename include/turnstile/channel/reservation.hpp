// SPDX-License-Identifier: BSL-1.0
// A place in a queue, taken before there is something to put there.
#pragma once

#include <turnstile/core/error.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A free place in a `Queue`, to be filled without waiting, or given back when it goes out of
/// scope. Movable, not copyable. It may outlive its queue, but is of no use then. Not itself
/// thread safe.
template <class Queue>
class [[nodiscard]] reservation {
public:
    using value_type = typename Queue::value_type;
    using label_type = typename Queue::label_type;
    using receipt_type = typename Queue::receipt_type;

    /// Holds nothing.
    reservation() noexcept = default;

    reservation(reservation&& other) noexcept = default;
    /// Gives back what it holds, then takes over what `other` holds.
    reservation& operator=(reservation&& other) noexcept
    {
        reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~reservation() { release(); }

    void swap(reservation& other) noexcept { state_.swap(other.state_); }

    /// Whether it holds a place.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Puts the value there, without waiting, and holds nothing afterwards. Works after `close`,
    /// too: those who pop wait for it.
    /// Errors: `errc::invalid_argument` if it holds nothing; `errc::closed` after
    /// `close(closing::discard)`, or when the queue is gone. Then the value has not been moved
    /// from, and a place that was held is held still. May throw what moving the value throws, or
    /// `std::bad_alloc`.
    receipt_type push(value_type&& value, error_code& ec) requires std::is_empty_v<label_type>
    {
        return Queue::receipt_for(fill(std::move(value), label_type(), ec));
    }
    /// The same, throwing `system_error`.
    receipt_type push(value_type&& value) requires std::is_empty_v<label_type>
    {
        return Queue::receipt_for(fill(std::move(value), label_type()));
    }
    receipt_type push(const value_type& value) requires std::is_empty_v<label_type>
    {
        return push(value_type(value));
    }

    /// The same for a `priority_queue`: with a priority, for a handle.
    receipt_type push(value_type&& value, label_type priority,
                      error_code& ec) requires(!std::is_empty_v<label_type>)
    {
        return Queue::receipt_for(fill(std::move(value), std::move(priority), ec));
    }
    receipt_type push(value_type&& value,
                      label_type priority) requires(!std::is_empty_v<label_type>)
    {
        return Queue::receipt_for(fill(std::move(value), std::move(priority)));
    }
    receipt_type push(const value_type& value,
                      label_type priority) requires(!std::is_empty_v<label_type>)
    {
        return push(value_type(value), std::move(priority));
    }

    /// Gives the place back now; does nothing if there is none.
    void release() noexcept
    {
        if (state_)
            std::exchange(state_, nullptr)->cancel_reservation();
    }

private:
    friend Queue;
    using state_type = typename Queue::state_type;
    explicit reservation(state_type& state) noexcept : state_(&state) {}

    auto fill(value_type&& value, label_type&& label, error_code& ec)
    {
        typename state_type::ticket_type ticket;
        if (!state_)
            ec = errc::invalid_argument;
        else if (!state_->fill_place(label, std::move(value), ticket))
            ec = errc::closed;
        else {
            ec = {};
            state_ = nullptr;
        }
        return ticket;
    }
    auto fill(value_type&& value, label_type&& label)
    {
        error_code ec;
        auto ticket = fill(std::move(value), std::move(label), ec);
        detail::throw_if(ec, "reservation::push");
        return ticket;
    }

    boost::intrusive_ptr<state_type> state_;
};

} // namespace turnstile::inline v0_1
