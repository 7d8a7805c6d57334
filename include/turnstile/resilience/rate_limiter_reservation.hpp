// SPDX-License-Identifier: BSL-1.0
// The handle of a reservation: permits of a rate limiter that may be used from a later time on.
#pragma once

#include <turnstile/resilience/detail/rate_limiter_state.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1 {

/// Permits of a rate limiter that may be used from `ready_at()` on. Movable, not copyable; it may
/// outlive its limiter.
///
/// The holder waits until `ready_at()`, by any means, and uses the permits, or it calls
/// `release()`. Unlike other handles, a reservation gives nothing back when it is destroyed:
/// permits of a rate limiter are used up, and the permits of a destroyed reservation count as used.
///
/// From the time the reservation is made, no other request gets its permits. Its time is fixed: it
/// does not become earlier when earlier requests are cancelled.
///
/// @par Thread safety
/// Distinct reservations may be used by different threads at the same time, as far as the
/// threading policy of the limiter allows; a single one may not.
template <class Limiter>
class [[nodiscard]] rate_limiter_reservation {
public:
    using time_point = typename Limiter::clock_type::time_point;

    /// An empty reservation.
    rate_limiter_reservation() noexcept = default;
    rate_limiter_reservation(rate_limiter_reservation&& other) noexcept
        : state_(std::move(other.state_)), booking_(std::move(other.booking_)), time_(other.time_)
    {
    }
    rate_limiter_reservation& operator=(rate_limiter_reservation&& other) noexcept
    {
        rate_limiter_reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~rate_limiter_reservation()
    {
        if (booking_)
            state_->orphan_booking(std::move(booking_));
    }

    void swap(rate_limiter_reservation& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(booking_, other.booking_);
        std::swap(time_, other.time_);
    }

    /// Whether it holds permits.
    explicit operator bool() const noexcept { return booking_ != nullptr; }
    /// The number of its permits; 0 if it is empty.
    [[nodiscard]] std::uint64_t count() const noexcept { return booking_ ? booking_->permits : 0; }
    /// The time from which the permits may be used.
    [[nodiscard]] time_point ready_at() const noexcept
    {
        using duration = typename time_point::duration;
        return time_point(std::chrono::ceil<duration>(time_));
    }
    /// The time until `ready_at()`; zero once that has passed. If the reservation was refused: the
    /// time that it would have taken.
    [[nodiscard]] nanoseconds delay() const noexcept
    {
        if (!booking_)
            return time_;
        const nanoseconds now = detail::now_on<typename Limiter::clock_type>();
        return std::max(saturating_sub(time_, now), nanoseconds::zero());
    }

    /// Gives the permits back; the reservation is empty afterwards. Does nothing if it is empty.
    ///
    /// Before `ready_at()` the effect is as if the reservation had never been made, except that
    /// later reservations keep their times. After it, permits are given back as far as rate and
    /// burst allow. Waiters move up.
    void release() noexcept
    {
        if (!booking_)
            return;
        state_->release_booking(*booking_);
        booking_.reset();
        state_.reset();
    }

private:
    friend Limiter;
    using state_type = typename Limiter::state_type;

    rate_limiter_reservation(state_type& state, std::uint64_t n, nanoseconds within, error_code& ec)
        : booking_(std::make_unique<detail::rate_limiter_booking>())
    {
        // The reference comes first, because a listener may destroy the limiter.
        boost::intrusive_ptr<state_type> kept(&state);
        ec = state.reserve(*booking_, n, within, time_);
        if (ec)
            booking_.reset();
        else
            state_ = std::move(kept);
    }

    boost::intrusive_ptr<state_type> state_;
    std::unique_ptr<detail::rate_limiter_booking> booking_;
    nanoseconds time_{};
};

} // namespace turnstile::inline v0_1
