// Permits of a rate limiter that will be there later.
#pragma once

#include <turnstile/resilience/detail/rate_gate.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace turnstile {

/// A place in the queue of a rate limiter. Movable, not copyable; it must not outlive its
/// limiter. Not itself thread safe.
///
/// Whoever has it waits until `ready_at()`, by whatever means, and goes ahead; or cancels.
/// Dropping it gives nothing back: the permits count as used.
///
/// That time is a promise. It does not become earlier when others leave the queue: then the
/// permits are kept until it has come, and nobody behind gets ahead.
template <class Limiter>
class rate_reservation {
public:
    using time_point = typename Limiter::clock_type::time_point;

    /// Holds nothing.
    rate_reservation() noexcept = default;
    rate_reservation(rate_reservation&& other) noexcept
        : limiter_(std::exchange(other.limiter_, nullptr)), claim_(std::move(other.claim_)),
          when_(other.when_)
    {
    }
    rate_reservation& operator=(rate_reservation&& other) noexcept
    {
        rate_reservation(std::move(other)).swap(*this);
        return *this;
    }
    ~rate_reservation()
    {
        if (claim_ && limiter_)
            limiter_->state().drop_claim(std::move(claim_));
    }

    void swap(rate_reservation& other) noexcept
    {
        std::swap(limiter_, other.limiter_);
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

    /// Gives the permits back, all of them if they were not yet there; then it is empty. What
    /// was there already is restored as if it had never been taken, but never beyond what rate
    /// and burst allow. Those who wait move up. Does nothing if it is empty.
    void cancel() noexcept
    {
        if (!claim_)
            return;
        std::exchange(limiter_, nullptr)->state().cancel_claim(std::move(claim_));
    }

private:
    friend Limiter;

    rate_reservation(Limiter& limiter, std::uint64_t n, nanoseconds within, error_code& ec)
        : claim_(std::make_unique<detail::rate_claim>())
    {
        ec = limiter.state().reserve(*claim_, n, within, when_);
        if (ec)
            claim_.reset();
        else
            limiter_ = &limiter;
    }

    Limiter* limiter_ = nullptr;
    std::unique_ptr<detail::rate_claim> claim_;
    nanoseconds when_{};
};

} // namespace turnstile
