// SPDX-License-Identifier: BSL-1.0
// Permits of a rate limiter that will be there later.
#pragma once

#include <turnstile/resilience/detail/rate_limiter_state.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1 {

/// Permits of a rate limiter that may be used from a certain time on. Movable, not copyable; it
/// may outlive its limiter. Not itself thread safe.
///
/// The holder waits until `ready_at()`, by whatever means, and uses the permits; or cancels.
/// Destroying the reservation gives nothing back: the permits count as used.
///
/// From the time the reservation is made no other request gets the permits. The time is a promise:
/// it does not become earlier when requests that came before are cancelled.
template <class Limiter>
class rate_reservation {
public:
    using time_point = typename Limiter::clock_type::time_point;

    /// Holds nothing.
    rate_reservation() noexcept = default;
    rate_reservation(rate_reservation&& other) noexcept
        : state_(std::move(other.state_)), claim_(std::move(other.claim_)), when_(other.when_)
    {
    }
    rate_reservation& operator=(rate_reservation&& other) noexcept
    {
        rate_reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~rate_reservation()
    {
        if (claim_)
            state_->drop_promise(std::move(claim_));
    }

    void swap(rate_reservation& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(claim_, other.claim_);
        std::swap(when_, other.when_);
    }

    /// Whether it stands for any permits.
    explicit operator bool() const noexcept { return claim_ != nullptr; }
    /// How many permits it stands for.
    [[nodiscard]] std::uint64_t count() const noexcept { return claim_ ? claim_->need : 0; }
    /// When they may be used; always the same.
    [[nodiscard]] time_point ready_at() const noexcept
    {
        using duration = typename time_point::duration;
        return time_point(std::chrono::ceil<duration>(when_));
    }
    /// How long until then, zero if that is past. For one that was refused because it would have
    /// taken too long: how long that was when it was asked for.
    [[nodiscard]] nanoseconds delay() const noexcept
    {
        if (!claim_)
            return when_;
        const nanoseconds now = detail::now_on<typename Limiter::clock_type>();
        return std::max(saturating_sub(when_, now), nanoseconds::zero());
    }

    /// Gives the permits back; then the reservation is empty. Before `ready_at()` that is as if
    /// they had never been taken, except that later reservations keep their time. After it, they
    /// are given back as far as rate and burst allow. Waiters move up. Does nothing if the
    /// reservation is empty.
    void cancel() noexcept
    {
        if (!claim_)
            return;
        state_->cancel_promise(*claim_);
        claim_.reset();
        state_.reset();
    }

private:
    friend Limiter;
    using state_type = typename Limiter::state_type;

    rate_reservation(state_type& state, std::uint64_t n, nanoseconds within, error_code& ec)
        : claim_(std::make_unique<detail::rate_promise>())
    {
        // First the reference: a listener may destroy the limiter.
        boost::intrusive_ptr<state_type> kept(&state);
        ec = state.reserve(*claim_, n, within, when_);
        if (ec)
            claim_.reset();
        else
            state_ = std::move(kept);
    }

    boost::intrusive_ptr<state_type> state_;
    std::unique_ptr<detail::rate_promise> claim_;
    nanoseconds when_{};
};

} // namespace turnstile::inline v0_1
