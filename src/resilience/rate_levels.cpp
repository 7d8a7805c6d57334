// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_levels.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace turnstile::inline v0_1::detail {
namespace {

// What a change of the limits adds to the number of refunds.
constexpr std::uint64_t one_change = std::uint64_t(1) << 32;

} // namespace

template <class Threading>
rate_levels<Threading>::plan::plan(std::vector<bandwidth> l) : limits(std::move(l))
{
    if (const char* what = problem(limits))
        throw_error(errc::invalid_argument, (std::string("rate_limiter: ") + what).c_str());
    for (std::size_t i = 1; i != limits.size(); ++i)
        rules.emplace_back(limits[i]);
    full.resize(rules.size());
    around.resize(limits.size());
}

template <class Threading>
const char* rate_levels<Threading>::problem(const std::vector<bandwidth>& limits) noexcept
{
    if (limits.empty())
        return "there must be a bandwidth";
    for (const bandwidth& b : limits) {
        if (const char* what = gcra::problem(b))
            return what;
    }
    return nullptr;
}

template <class Threading>
rate_levels<Threading>::rate_levels(std::vector<bandwidth> limits, nanoseconds now)
{
    plan start(std::move(limits));
    set_first(gcra(start.limits.front()), now);
    close_fast_path();
    change(start, now);
    release(false);
}

// A claim that is still here was dropped by its holder, who would keep this otherwise.
template <class Threading>
rate_levels<Threading>::~rate_levels()
{
    promised_.clear_and_dispose([](rate_promise* promise) { delete promise; });
}

template <class Threading>
template <class F>
void rate_levels<Threading>::each(F f) noexcept
{
    gcra::ticks full = first_full();
    const gcra::ticks before = full;
    f(first(), full, around_[0]);
    if (full != before)
        set_first_full(full);
    for (std::size_t i = 0; i != rules_.size(); ++i)
        f(rules_[i], full_[i], around_[i + 1]);
}

template <class Threading>
void rate_levels<Threading>::set_first(const gcra& rule, nanoseconds origin) noexcept
{
    scale_.store(rule.scale(), std::memory_order_release);
    interval_.store(rule.interval(), std::memory_order_release);
    limit_.store(rule.burst_and_mode(), std::memory_order_release);
    origin_.store(origin.count(), std::memory_order_release);
}

template <class Threading>
auto rate_levels<Threading>::try_take(nanoseconds now, std::uint64_t n, rate_stamp& stamp) noexcept
    -> outcome
{
    stamp.taken = now;
    // Before the word: what is given back meanwhile may count twice then, but is never missed.
    stamp.refunds = refunds_.load(std::memory_order_acquire);
    // What others take meanwhile only makes it later.
    stamp.full = std::max(now, until(first(), first_full()));
    return try_take(now, n);
}

template <class Threading>
void rate_levels<Threading>::close_fast_path() noexcept
{
    set_bits(word_, held);
}

template <class Threading>
void rate_levels<Threading>::release(bool keep) noexcept
{
    if (!keep && rules_.empty() && promised_.empty())
        word_.store(first_full() << 1, std::memory_order_release);
}

// Promises are settled up to now, as far as they come before the waiter. If it does not fit in
// front of those that are left, it is looked at again after the first of them.
template <class Threading>
rate_moment rate_levels<Threading>::due(nanoseconds now, std::uint64_t n, nanoseconds from) noexcept
{
    for (;;) {
        const nanoseconds open = opens(now, n, 0);
        const rate_moment when{std::max(open, from), open >= from};
        if (promised_.empty())
            return when;
        const nanoseconds next = promised_.front().ready_at;
        if (next > when.time && fits(now, when, n, 0))
            return when;
        if (next > now)
            return {std::max(next, when.time)};
        settle_first();
    }
}

template <class Threading>
nanoseconds rate_levels<Threading>::opens(nanoseconds now, std::uint64_t n,
                                          std::uint64_t ahead) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    each([&](const gcra& rule, gcra::ticks& full, bounds&) {
        const gcra::ticks open =
            rule.opens(behind(rule, full, now, ahead), std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(origin(), rule.time_of(open)));
    });
    return latest;
}

// Whether n permits can be taken after `ahead` others, all of them before the first promise.
template <class Threading>
bool rate_levels<Threading>::fits(nanoseconds now, rate_moment when, std::uint64_t n,
                                  std::uint64_t ahead) noexcept
{
    for (;;) {
        bool result = true;
        each([&](const gcra& rule, gcra::ticks& full, bounds& b) {
            const gcra::ticks before = behind(rule, full, now, ahead);
            const gcra::ticks time = moment_of(rule, before, when, n);
            result = result && rule.charged(before, time, n) <= b.latest;
        });
        if (result || !latest_is_early_)
            return result;
        find_latest();
    }
}

template <class Threading>
nanoseconds rate_levels<Threading>::expected(nanoseconds now, std::uint64_t n,
                                             const rate_line& line) noexcept
{
    if (rules_.empty() || line.empty()) {
        const nanoseconds open = opens(now, n, line.need());
        const rate_moment when{std::max(open, now), open > now};
        const bool is_first = promised_.empty() || promised_.front().ready_at > when.time;
        if (is_first && fits(now, when, n, line.need()))
            return open;
    }
    check_tails(now, line);
    const nanoseconds open = tail_opens(n);
    return has_promised() && line.empty() ? std::max(open, promised_.front().ready_at) : open;
}

template <class Threading>
bool rate_levels<Threading>::can_add(nanoseconds now, std::uint64_t n,
                                     const rate_line& line) const noexcept
{
    bool result = true;
    each([&](const gcra& rule, gcra::ticks& full, bounds&) {
        const gcra::ticks then = behind(rule, full, now, line.need() + promised_need_ + n);
        result = result && then != gcra::end_of_time;
    });
    return result;
}

template <class Threading>
rate_stamp rate_levels<Threading>::take(rate_moment when, std::uint64_t n) noexcept
{
    rate_stamp stamp{when.time, nanoseconds::max(), refunds_.load(std::memory_order_relaxed)};
    each([&](const gcra& rule, gcra::ticks& full, bounds&) {
        const gcra::ticks time = moment_of(rule, full, when, n);
        stamp.full = std::min(stamp.full, until(rule, std::max(full, time)));
        full = rule.charged(full, time, n);
    });
    return stamp;
}

template <class Threading>
void rate_levels<Threading>::apply_due_promises(nanoseconds now) noexcept
{
    while (has_promised() && promised_.front().ready_at <= now)
        settle_first();
}

template <class Threading>
void rate_levels<Threading>::settle_first() noexcept
{
    rate_promise& promise = promised_.front();
    forget(promise);
    each([&](const gcra& rule, gcra::ticks&, bounds& b) {
        if (b.latest != 0 && b.latest != gcra::end_of_time)
            b.latest = rule.charged(b.latest, 0, promise.need);
    });
    promise.stamp = take({promise.ready_at, true}, promise.need);
    if (promise.is_dropped)
        delete &promise;
}

// Without it the others can be kept with the same `latest`, or a later one.
template <class Threading>
void rate_levels<Threading>::forget(rate_promise& promise) noexcept
{
    promised_.erase(promised_.iterator_to(promise));
    promised_need_ -= promise.need;
    latest_is_early_ = has_promised();
    if (!latest_is_early_)
        find_latest();
}

template <class Threading>
void rate_levels<Threading>::find_latest() noexcept
{
    each([&](const gcra& rule, gcra::ticks&, bounds& b) {
        b.latest = gcra::end_of_time;
        std::uint64_t before = 0;
        for (const rate_promise& promise : promised_) {
            const gcra::ticks use = rule.at(since(promise.ready_at));
            b.latest = std::min(b.latest, rule.latest(use, promise.need, before));
            before += promise.need;
        }
    });
    latest_is_early_ = false;
}

template <class Threading>
void rate_levels<Threading>::joining(rate_waiter& w, nanoseconds now,
                                     const rate_line& line) noexcept
{
    w.reservations = reservations_;
    if (rules_.empty() && promised_.empty())
        return; // what is expected follows from the bucket
    check_tails(now, line);
    append({std::max(now, tail_opens(w.need)), true}, w.need);
}

template <class Threading>
void rate_levels<Threading>::reserve(rate_promise& promise, nanoseconds now,
                                     const rate_line& line) noexcept
{
    if (promise.ready_at <= now && line.empty()) { // as a grant
        promise.stamp = take({now}, promise.need);
        note_change();
        return;
    }
    check_tails(now, line);
    append({std::max(promise.ready_at, tail_opens(promise.need)), true}, promise.need);
    promise.number = ++reservations_;
    auto place = promised_.end();
    while (place != promised_.begin() && std::prev(place)->ready_at > promise.ready_at)
        --place;
    const bool is_last = place == promised_.end();
    promised_.insert(place, promise);
    if (is_last) {
        each([&](const gcra& rule, gcra::ticks&, bounds& b) {
            const gcra::ticks use = rule.at(since(promise.ready_at));
            b.latest = std::min(b.latest, rule.latest(use, promise.need, promised_need_));
        });
    } else {
        find_latest();
    }
    promised_need_ += promise.need;
    if (line.empty())
        apply_due_promises(now);
}

template <class Threading>
void rate_levels<Threading>::cancel(rate_promise& promise, nanoseconds now) noexcept
{
    if (!promise.is_promised()) {
        give_back(now, promise.need, promise.stamp);
        return;
    }
    forget(promise);
    note_change();
}

// Tails that nobody has looked at since they were simple are not up to date.
template <class Threading>
void rate_levels<Threading>::check_tails(nanoseconds now, const rate_line& line) noexcept
{
    constexpr std::size_t waiters_for_each = 64;
    if (has_simple(line)) {
        each([&](const gcra& rule, gcra::ticks& full, bounds& b) {
            b.tail = behind(rule, full, now, line.need());
        });
        changes_ = 0;
    } else if (changes_ != 0 && line.waiting() / waiters_for_each <= changes_) {
        measure(now, line);
    }
}

// In the order in which requests were made; one that could go earlier makes it no later.
template <class Threading>
void rate_levels<Threading>::measure(nanoseconds now, const rate_line& line) noexcept
{
    each([](const gcra&, gcra::ticks& full, bounds& b) { b.tail = full; });
    auto promise = promised_.begin();
    bool kept = true; // every promise, in this order
    const auto append_promises = [&](std::uint64_t last) {
        for (; promise != promised_.end() && promise->number <= last; ++promise) {
            kept = kept && tail_opens(promise->need) <= promise->ready_at;
            append({promise->ready_at, true}, promise->need);
        }
    };
    line.each([&](const rate_waiter& w) {
        append_promises(w.reservations);
        append({std::max(now, tail_opens(w.need)), true}, w.need);
    });
    append_promises(reservations_);
    if (!kept) {
        // After a change of the limits a waiter may have to wait for promises behind it.
        each([](const gcra&, gcra::ticks& full, bounds& b) { b.tail = full; });
        for (const rate_promise& c : promised_)
            append({c.ready_at, true}, c.need);
        const nanoseconds last = std::max(now, promised_.back().ready_at);
        line.each([&](const rate_waiter& w) {
            append({std::max(last, tail_opens(w.need)), true}, w.need);
        });
    }
    changes_ = 0;
}

template <class Threading>
nanoseconds rate_levels<Threading>::tail_opens(std::uint64_t n) const noexcept
{
    nanoseconds latest = nanoseconds::min();
    each([&](const gcra& rule, gcra::ticks&, bounds& b) {
        const gcra::ticks open = rule.opens(b.tail, std::min(n, rule.burst()));
        latest = std::max(latest, saturating_add(origin(), rule.time_of(open)));
    });
    return latest;
}

template <class Threading>
void rate_levels<Threading>::append(rate_moment when, std::uint64_t n) noexcept
{
    each([&](const gcra& rule, gcra::ticks&, bounds& b) {
        b.tail = rule.charged(b.tail, moment_of(rule, b.tail, when, n), n);
    });
}

// Until when the bucket could not have been full without what was taken then, now that others
// may have given back what they had taken before. If too many have, or the limits were changed,
// it is not known better than at the time.
template <class Threading>
nanoseconds rate_levels<Threading>::not_full_until(const rate_stamp& stamp) const noexcept
{
    const std::uint64_t last = refunds_.load(std::memory_order_relaxed);
    if (last - stamp.refunds > recent_.size())
        return stamp.taken;
    nanoseconds full = stamp.full;
    for (std::uint64_t i = stamp.refunds; i != last; ++i) {
        const refund& r = recent_[i % recent_.size()];
        if (r.full <= full)
            full = saturating_sub(full, r.amount);
    }
    return std::max(stamp.taken, full);
}

template <class Threading>
void rate_levels<Threading>::give_back(nanoseconds now, std::uint64_t n,
                                       const rate_stamp& stamp) noexcept
{
    if (refunds_.load(std::memory_order_relaxed) - stamp.refunds >= one_change)
        return; // taken by earlier limits, and earned at another rate
    peak_ = std::max(peak_, first_full());
    refund r{not_full_until(stamp), nanoseconds::zero()};
    const nanoseconds idle = std::max(saturating_sub(now, r.full), nanoseconds::zero());
    each([&](const gcra& rule, gcra::ticks& full, bounds&) {
        const gcra::ticks after = rule.refunded(full, n, rule.at(idle));
        r.amount = std::max(r.amount, rule.time_of(full - after));
        full = after;
    });
    const std::uint64_t number = refunds_.load(std::memory_order_relaxed);
    recent_[number % recent_.size()] = r;
    refunds_.store(number + 1, std::memory_order_release);
    note_change();
}

template <class Threading>
std::uint64_t rate_levels<Threading>::available(nanoseconds now) noexcept
{
    if (latest_is_early_)
        find_latest();
    std::uint64_t least = burst();
    each([&](const gcra& rule, gcra::ticks& full, bounds& b) {
        const gcra::ticks time = rule.at(since(now));
        const gcra::ticks from = std::max(full, time);
        const std::uint64_t room = b.latest > from ? (b.latest - from) / rule.interval() : 0;
        least = std::min({least, rule.available(full, time), room});
    });
    return least;
}

template <class Threading>
void rate_levels<Threading>::change(plan& next, nanoseconds now) noexcept
{
    const nanoseconds time = since(now);
    const gcra rule(next.limits.front());
    peak_ = std::max(peak_, first_full());
    const auto missing = [&](const gcra& to, const gcra& from, gcra::ticks full) {
        return std::min(to.converted(from, full, time) - to.at(time), gcra::end_of_time >> 2);
    };
    const gcra::ticks lacks = missing(rule, first(), first_full());
    const gcra::ticks rest = peak_ - std::min(peak_, lacks);
    const nanoseconds moved(static_cast<std::int64_t>(rest / rule.scale() + 1));
    const auto convert = [&](const gcra& to, const gcra& from, gcra::ticks full) {
        return missing(to, from, full) + to.at(moved);
    };
    const gcra::ticks full = lacks + rule.at(moved);
    for (std::size_t i = 0; i != next.rules.size(); ++i) {
        next.full[i] = i < rules_.size() ? convert(next.rules[i], rules_[i], full_[i])
                                         : next.rules[i].at(moved);
    }
    set_first(rule, saturating_sub(now, moved));
    set_first_full(full);
    limits_.swap(next.limits);
    rules_.swap(next.rules);
    full_.swap(next.full);
    around_.swap(next.around);
    std::uint64_t least = rule.burst();
    for (const gcra& other : rules_)
        least = std::min(least, other.burst());
    burst_.store(least, std::memory_order_relaxed);
    find_latest();
    // What stamps say is in the old measure.
    refunds_.store(refunds_.load(std::memory_order_relaxed) + one_change,
                   std::memory_order_release);
}

template class rate_levels<thread_safe>;
template class rate_levels<strand_confined>;

} // namespace turnstile::inline v0_1::detail
