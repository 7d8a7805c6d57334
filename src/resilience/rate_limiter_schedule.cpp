// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_limiter_schedule.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A promise that is still in the list is orphaned: its reservation would keep the state alive.
template <class Threading>
rate_limiter_schedule<Threading>::~rate_limiter_schedule()
{
    promises_.clear_and_dispose([](rate_limiter_promise* promise) { delete promise; });
}

// --- Promises.

// Applies the promises that are due before the waiter. If the waiter does not fit in front of the
// remaining ones, it is due after the first of them at the earliest.
template <class Threading>
charge_time rate_limiter_schedule<Threading>::due(nanoseconds now, std::uint64_t n,
                                                  nanoseconds from) noexcept
{
    for (;;) {
        const nanoseconds open = this->opens(now, n, 0);
        const charge_time when{std::max(open, from), open >= from};
        if (promises_.empty())
            return when;
        const nanoseconds next = promises_.front().ready_at;
        if (next > when.time && fits(now, when, n, 0))
            return when;
        if (next > now)
            return {std::max(next, when.time)};
        apply_first_promise();
    }
}

// Whether n permits can be taken after `ahead` others, all of them before the first promise.
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
void rate_limiter_schedule<Threading>::apply_due_promises(nanoseconds now) noexcept
{
    while (has_promised() && promises_.front().ready_at <= now)
        apply_first_promise();
}

template <class Threading>
void rate_limiter_schedule<Threading>::apply_first_promise() noexcept
{
    rate_limiter_promise& promise = promises_.front();
    remove(promise);
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        gcra::ticks& latest = bounds_[i].latest;
        if (latest != 0 && latest != gcra::end_of_time)
            latest = rule.charged(latest, 0, promise.permits);
    });
    promise.receipt = this->take({promise.ready_at, true}, promise.permits);
    if (promise.is_orphaned)
        delete &promise;
}

// The other promises can be kept with the same `latest`, or with a later one.
template <class Threading>
void rate_limiter_schedule<Threading>::remove(rate_limiter_promise& promise) noexcept
{
    promises_.erase(promises_.iterator_to(promise));
    promised_permits_ -= promise.permits;
    latest_is_early_ = has_promised();
    if (!latest_is_early_)
        find_latest();
}

template <class Threading>
void rate_limiter_schedule<Threading>::find_latest() noexcept
{
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        gcra::ticks latest = gcra::end_of_time;
        std::uint64_t before = 0;
        for (const rate_limiter_promise& promise : promises_) {
            const gcra::ticks use = rule.at(this->since_origin(promise.ready_at));
            latest = std::min(latest, rule.latest(use, promise.permits, before));
            before += promise.permits;
        }
        bounds_[i].latest = latest;
    });
    latest_is_early_ = false;
}

template <class Threading>
void rate_limiter_schedule<Threading>::reserve(rate_limiter_promise& promise, nanoseconds now,
                                               const rate_limiter_line& line) noexcept
{
    if (promise.ready_at <= now && line.empty()) {
        promise.receipt = this->take({now}, promise.permits);
        note_change();
        return;
    }
    update_tails(now, line);
    append_to_tails({std::max(promise.ready_at, tail_opens(promise.permits)), true},
                    promise.permits);
    promise.number = ++reservations_;
    auto place = promises_.end();
    while (place != promises_.begin() && std::prev(place)->ready_at > promise.ready_at)
        --place;
    const bool is_last = place == promises_.end();
    promises_.insert(place, promise);
    if (is_last) {
        this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
            const gcra::ticks use = rule.at(this->since_origin(promise.ready_at));
            bounds_[i].latest =
                std::min(bounds_[i].latest, rule.latest(use, promise.permits, promised_permits_));
        });
    } else {
        find_latest();
    }
    promised_permits_ += promise.permits;
    if (line.empty())
        apply_due_promises(now);
}

template <class Threading>
void rate_limiter_schedule<Threading>::release(rate_limiter_promise& promise,
                                               nanoseconds now) noexcept
{
    if (!promise.is_outstanding()) {
        give_back(now, promise.permits, promise.receipt);
        return;
    }
    remove(promise);
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
        const nanoseconds open = this->opens(now, n, line.permits());
        const charge_time when{std::max(open, now), open > now};
        const bool is_first = promises_.empty() || promises_.front().ready_at > when.time;
        if (is_first && fits(now, when, n, line.permits()))
            return open;
    }
    update_tails(now, line);
    const nanoseconds open = tail_opens(n);
    return has_promised() && line.empty() ? std::max(open, promises_.front().ready_at) : open;
}

template <class Threading>
bool rate_limiter_schedule<Threading>::can_add(nanoseconds now, std::uint64_t n,
                                               const rate_limiter_line& line) const noexcept
{
    bool result = true;
    this->each([&](std::size_t, const gcra& rule, gcra::ticks full) {
        const std::uint64_t ahead = line.permits() + promised_permits_ + n;
        result = result && this->full_after(rule, full, now, ahead) != gcra::end_of_time;
    });
    return result;
}

template <class Threading>
void rate_limiter_schedule<Threading>::joining(rate_limiter_waiter& w, nanoseconds now,
                                               const rate_limiter_line& line) noexcept
{
    w.reservations_before = reservations_;
    if (this->is_single() && promises_.empty())
        return; // predictions follow from the bucket
    update_tails(now, line);
    append_to_tails({std::max(now, tail_opens(w.permits)), true}, w.permits);
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
    auto promise = promises_.begin();
    bool all_kept = true; // every promise can be kept in this order
    const auto append_promises = [&](std::uint64_t last) {
        for (; promise != promises_.end() && promise->number <= last; ++promise) {
            all_kept = all_kept && tail_opens(promise->permits) <= promise->ready_at;
            append_to_tails({promise->ready_at, true}, promise->permits);
        }
    };
    line.each([&](const rate_limiter_waiter& w) {
        append_promises(w.reservations_before);
        append_to_tails({std::max(now, tail_opens(w.permits)), true}, w.permits);
    });
    append_promises(reservations_);
    if (!all_kept) {
        // After a change of the limits a waiter may have to wait for promises behind it.
        reset_tails();
        for (const rate_limiter_promise& p : promises_)
            append_to_tails({p.ready_at, true}, p.permits);
        const nanoseconds last = std::max(now, promises_.back().ready_at);
        line.each([&](const rate_limiter_waiter& w) {
            append_to_tails({std::max(last, tail_opens(w.permits)), true}, w.permits);
        });
    }
    changes_ = 0;
}

template <class Threading>
nanoseconds rate_limiter_schedule<Threading>::tail_opens(std::uint64_t n) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    this->each([&](std::size_t i, const gcra& rule, gcra::ticks) {
        const gcra::ticks open = rule.opens(bounds_[i].tail, std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(this->origin(), rule.time_of(open)));
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
