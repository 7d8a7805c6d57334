// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_limiter_schedule.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A booking that is still in the list is orphaned: its reservation would keep the state alive.
template <class Threading>
rate_limiter_schedule<Threading>::~rate_limiter_schedule()
{
    bookings_.clear_and_dispose([](rate_limiter_booking* booking) { delete booking; });
}

// --- Bookings.

// Applies the bookings that are due before the waiter. If the waiter does not fit in front of the
// remaining ones, it is due after the first of them at the earliest.
template <class Threading>
charge_time rate_limiter_schedule<Threading>::due(nanoseconds now, std::uint64_t n,
                                                  nanoseconds from) noexcept
{
    for (;;) {
        const nanoseconds allowed = this->allowed_at(now, n, 0);
        const charge_time when{std::max(allowed, from), allowed >= from};
        if (bookings_.empty())
            return when;
        const nanoseconds next = bookings_.front().ready_at;
        if (next > when.time && fits(now, when, n, 0))
            return when;
        if (next > now)
            return {std::max(next, when.time)};
        apply_first_booking();
    }
}

// Whether n permits can be taken after `ahead` others, all of them before the first booking.
template <class Threading>
bool rate_limiter_schedule<Threading>::fits(nanoseconds now, charge_time when, std::uint64_t n,
                                            std::uint64_t ahead) noexcept
{
    for (;;) {
        bool result = true;
        this->each([&](std::size_t i, const gcra& rule, gcra::ticks full) {
            const gcra::ticks before = this->full_after(rule, full, now, ahead);
            const gcra::ticks tick = this->tick_of(rule, before, when, n);
            result = result && rule.charged(before, tick, n) <= bounds_[i].latest;
        });
        if (result || !latest_is_early_)
            return result;
        find_latest();
    }
}

template <class Threading>
void rate_limiter_schedule<Threading>::apply_due_bookings(nanoseconds now) noexcept
{
    while (has_bookings() && bookings_.front().ready_at <= now)
        apply_first_booking();
}

template <class Threading>
void rate_limiter_schedule<Threading>::apply_first_booking() noexcept
{
    rate_limiter_booking& booking = bookings_.front();
    remove(booking);
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        gcra::ticks& latest = bounds_[i].latest;
        if (latest != 0 && latest != gcra::end_of_time)
            latest = rule.charged(latest, 0, booking.permits);
    });
    booking.receipt = this->take({booking.ready_at, true}, booking.permits);
    if (booking.is_orphaned)
        delete &booking;
}

// The other bookings can be kept with the same `latest`, or with a later one.
template <class Threading>
void rate_limiter_schedule<Threading>::remove(rate_limiter_booking& booking) noexcept
{
    bookings_.erase(bookings_.iterator_to(booking));
    booked_permits_ -= booking.permits;
    latest_is_early_ = has_bookings();
    if (!latest_is_early_)
        find_latest();
}

template <class Threading>
void rate_limiter_schedule<Threading>::find_latest() noexcept
{
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        gcra::ticks latest = gcra::end_of_time;
        std::uint64_t before = 0;
        for (const rate_limiter_booking& booking : bookings_) {
            const gcra::ticks use = rule.at(this->since_origin(booking.ready_at));
            latest = std::min(latest, rule.latest(use, booking.permits, before));
            before += booking.permits;
        }
        bounds_[i].latest = latest;
    });
    latest_is_early_ = false;
}

template <class Threading>
void rate_limiter_schedule<Threading>::reserve(rate_limiter_booking& booking, nanoseconds now,
                                               const rate_limiter_line& line) noexcept
{
    if (booking.ready_at <= now && line.empty()) {
        booking.receipt = this->take({now}, booking.permits);
        note_change();
        return;
    }
    update_tails(now, line);
    append_to_tails({std::max(booking.ready_at, tail_allows_at(booking.permits)), true},
                    booking.permits);
    booking.number = ++reservations_;
    auto place = bookings_.end();
    while (place != bookings_.begin() && std::prev(place)->ready_at > booking.ready_at)
        --place;
    const bool is_last = place == bookings_.end();
    bookings_.insert(place, booking);
    if (is_last) {
        this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
            const gcra::ticks use = rule.at(this->since_origin(booking.ready_at));
            bounds_[i].latest =
                std::min(bounds_[i].latest, rule.latest(use, booking.permits, booked_permits_));
        });
    } else {
        find_latest();
    }
    booked_permits_ += booking.permits;
    if (line.empty())
        apply_due_bookings(now);
}

template <class Threading>
void rate_limiter_schedule<Threading>::release(rate_limiter_booking& booking,
                                               nanoseconds now) noexcept
{
    if (!booking.is_outstanding()) {
        refund(now, booking.permits, booking.receipt);
        return;
    }
    remove(booking);
    note_change();
}

template <class Threading>
std::uint64_t rate_limiter_schedule<Threading>::available(nanoseconds now) noexcept
{
    if (latest_is_early_)
        find_latest();
    std::uint64_t least = this->burst();
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks full) {
        const gcra::ticks time = rule.at(this->since_origin(now));
        const gcra::ticks from = std::max(full, time);
        const gcra::ticks latest = bounds_[i].latest;
        const std::uint64_t room = latest > from ? (latest - from) / rule.interval() : 0;
        least = std::min({least, rule.available(full, time), room});
    });
    return least;
}

template <class Threading>
void rate_limiter_schedule<Threading>::change(prepared_limits& next, nanoseconds now) noexcept
{
    base::change(next, now);
    bounds_.swap(next.all_bounds);
    find_latest();
}

// --- Predictions.

template <class Threading>
nanoseconds rate_limiter_schedule<Threading>::expected(nanoseconds now, std::uint64_t n,
                                                       const rate_limiter_line& line) noexcept
{
    if (this->is_single() || line.empty()) {
        const nanoseconds allowed = this->allowed_at(now, n, line.permits());
        const charge_time when{std::max(allowed, now), allowed > now};
        const bool is_first = bookings_.empty() || bookings_.front().ready_at > when.time;
        if (is_first && fits(now, when, n, line.permits()))
            return allowed;
    }
    update_tails(now, line);
    const nanoseconds allowed = tail_allows_at(n);
    return has_bookings() && line.empty() ? std::max(allowed, bookings_.front().ready_at) : allowed;
}

template <class Threading>
bool rate_limiter_schedule<Threading>::can_add(nanoseconds now, std::uint64_t n,
                                               const rate_limiter_line& line) const noexcept
{
    bool result = true;
    this->each([&](std::size_t, const gcra& rule, gcra::ticks full) {
        const std::uint64_t ahead = line.permits() + booked_permits_ + n;
        result = result && this->full_after(rule, full, now, ahead) != gcra::end_of_time;
    });
    return result;
}

template <class Threading>
void rate_limiter_schedule<Threading>::joining(rate_limiter_waiter& w, nanoseconds now,
                                               const rate_limiter_line& line) noexcept
{
    w.reservations_before = reservations_;
    if (this->is_single() && bookings_.empty())
        return; // predictions follow from the bucket
    update_tails(now, line);
    append_to_tails({std::max(now, tail_allows_at(w.permits)), true}, w.permits);
}

// While the tails are simple they are not maintained; they are computed when they are needed.
template <class Threading>
void rate_limiter_schedule<Threading>::update_tails(nanoseconds now,
                                                    const rate_limiter_line& line) noexcept
{
    constexpr std::size_t waiters_for_each_change = 64;
    if (has_simple_tails(line)) {
        this->each([&](std::size_t i, const gcra& rule, gcra::ticks full) {
            bounds_[i].tail = this->full_after(rule, full, now, line.permits());
        });
        changes_ = 0;
    } else if (changes_ != 0 && line.waiting() / waiters_for_each_change <= changes_) {
        measure(now, line);
    }
}

template <class Threading>
void rate_limiter_schedule<Threading>::reset_tails() noexcept
{
    this->each([&](std::size_t i, const gcra&, gcra::ticks full) { bounds_[i].tail = full; });
}

// Appends all requests in the order in which they were made. A request that is granted earlier than
// that order says makes no tail later.
template <class Threading>
void rate_limiter_schedule<Threading>::measure(nanoseconds now,
                                               const rate_limiter_line& line) noexcept
{
    reset_tails();
    auto booking = bookings_.begin();
    bool all_kept = true; // every booking can be kept in this order
    const auto append_bookings = [&](std::uint64_t last) {
        for (; booking != bookings_.end() && booking->number <= last; ++booking) {
            all_kept = all_kept && tail_allows_at(booking->permits) <= booking->ready_at;
            append_to_tails({booking->ready_at, true}, booking->permits);
        }
    };
    line.each([&](const rate_limiter_waiter& w) {
        append_bookings(w.reservations_before);
        append_to_tails({std::max(now, tail_allows_at(w.permits)), true}, w.permits);
    });
    append_bookings(reservations_);
    if (!all_kept) {
        // After a change of the limits a waiter may have to wait for bookings behind it.
        reset_tails();
        for (const rate_limiter_booking& p : bookings_)
            append_to_tails({p.ready_at, true}, p.permits);
        const nanoseconds last = std::max(now, bookings_.back().ready_at);
        line.each([&](const rate_limiter_waiter& w) {
            append_to_tails({std::max(last, tail_allows_at(w.permits)), true}, w.permits);
        });
    }
    changes_ = 0;
}

template <class Threading>
nanoseconds rate_limiter_schedule<Threading>::tail_allows_at(std::uint64_t n) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        const gcra::ticks allowed = rule.allowed_at(bounds_[i].tail, std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(this->origin(), rule.time_of(allowed)));
    });
    return latest;
}

template <class Threading>
void rate_limiter_schedule<Threading>::append_to_tails(charge_time when, std::uint64_t n) noexcept
{
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        gcra::ticks& tail = bounds_[i].tail;
        tail = rule.charged(tail, this->tick_of(rule, tail, when, n), n);
    });
}

template class rate_limiter_schedule<thread_safe>;
template class rate_limiter_schedule<strand_confined>;

} // namespace turnstile::inline v0_1::detail
