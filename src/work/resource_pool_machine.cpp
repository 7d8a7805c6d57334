// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/resource_pool_machine.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace turnstile::inline v0_1::detail {

pool_slot::~pool_slot() = default;
void pool_slot::destroy_resource() noexcept {}

namespace {

const char* broken_rule(const resource_pool_options& o) noexcept
{
    constexpr auto zero = nanoseconds::zero();
    if (o.max_size == 0)
        return "resource_pool: max_size must not be 0";
    if (o.min_size > o.max_size)
        return "resource_pool: min_size must not exceed max_size";
    if (o.initial_size > o.max_size)
        return "resource_pool: initial_size must not exceed max_size";
    if (o.idle_timeout <= zero)
        return "resource_pool: idle_timeout must be positive";
    if (o.max_lifetime <= zero)
        return "resource_pool: max_lifetime must be positive";
    if (o.create_timeout <= zero)
        return "resource_pool: create_timeout must be positive";
    if (o.check_timeout <= zero)
        return "resource_pool: check_timeout must be positive";
    if (o.reset_timeout <= zero)
        return "resource_pool: reset_timeout must be positive";
    if (o.close_timeout <= zero)
        return "resource_pool: close_timeout must be positive";
    if (!(o.lifetime_jitter >= 0 && o.lifetime_jitter < 1))
        return "resource_pool: lifetime_jitter must be in [0, 1)";
    if (o.max_uses == 0)
        return "resource_pool: max_uses must not be 0";
    if (o.bypass_window < zero)
        return "resource_pool: bypass_window must not be negative";
    if (o.check_interval <= zero)
        return "resource_pool: check_interval must be positive";
    if (o.order != reuse_order::newest_first && o.order != reuse_order::oldest_first)
        return "resource_pool: order must be a reuse_order";
    if (o.max_creating == 0)
        return "resource_pool: max_creating must not be 0";
    if (o.leak_threshold <= zero)
        return "resource_pool: leak_threshold must be positive";
    return nullptr;
}

bool depends_on_time(const resource_pool_options& o, bool has_check) noexcept
{
    constexpr auto never = resource_pool_machine::never;
    return o.idle_timeout != never || o.max_lifetime != never || o.leak_threshold != never ||
           (has_check && (o.bypass_window != never || o.check_interval != never));
}

bool is_operation(slot_phase phase) noexcept
{
    return phase == slot_phase::creating || phase == slot_phase::checking ||
           phase == slot_phase::resetting || phase == slot_phase::closing;
}

} // namespace

const resource_pool_options& resource_pool_machine::validated(const resource_pool_options& options)
{
    throw_if_wrong(broken_rule(options));
    return options;
}

resource_pool_machine::resource_pool_machine(const resource_pool_options& options, abilities has,
                                             observer& events, std::uint64_t seed)
    : options_(validated(options)), has_(has), events_(events),
      needs_clock_(depends_on_time(options, has.check)), is_plain_(!needs_clock_ && !has.reset),
      initial_(std::max(options.initial_size, options.min_size)), random_(seed),
      backoff_(options.create_backoff, seed)
{
    if (!has_.check) {
        options_.bypass_window = never;
        options_.check_interval = never;
    }
}

resource_pool_machine::~resource_pool_machine()
{
    while (!all_.empty())
        release(all_.front());
    while (!released_.empty()) {
        const pool_slot_ptr s(&released_.front(), false);
        released_.pop_front();
    }
}

bool resource_pool_machine::needs_check(const pool_slot& s, nanoseconds now) const noexcept
{
    return options_.bypass_window != never && s.turn_ != turn_ &&
           now >= saturating_add(s.proven_, options_.bypass_window);
}

pool_slot& resource_pool_machine::next_idle() noexcept
{
    return options_.order == reuse_order::newest_first ? idle_.back() : idle_.front();
}

void resource_pool_machine::leave_idle(pool_slot& s) noexcept { idle_.erase(idle_.iterator_to(s)); }

pool_slot* resource_pool_machine::take(nanoseconds now) noexcept
{
    if (suspended_ || closed_)
        return nullptr;
    while (!idle_.empty()) {
        pool_slot& s = next_idle();
        if (now >= s.expires_) {
            leave_idle(s);
            evict(s, eviction_reason::max_lifetime, now, true);
            continue;
        }
        if (needs_check(s, now))
            return nullptr;
        leave_idle(s);
        s.phase_ = slot_phase::leased;
        s.since_ = now;
        s.is_reported_ = false;
        ++in_use_;
        ++totals_.acquired;
        if (options_.leak_threshold != never)
            expect(s);
        return &s;
    }
    return nullptr;
}

bool resource_pool_machine::must_close(const pool_slot& s, nanoseconds now,
                                       eviction_reason& reason) const noexcept
{
    if (closed_)
        reason = eviction_reason::closed;
    else if (live() > options_.max_size)
        reason = eviction_reason::resized;
    else if (now >= s.expires_)
        reason = eviction_reason::max_lifetime;
    else if (s.uses_ >= options_.max_uses)
        reason = eviction_reason::max_uses;
    else
        return false;
    return true;
}

void resource_pool_machine::make_idle(pool_slot& s) noexcept
{
    auto place = idle_.end();
    // A check does not change the order of the slots by age. But with newest_first the slot that
    // was checked for a caller is the next one, also if others were returned meanwhile.
    if (s.phase_ == slot_phase::checking &&
        (s.is_background_check_ || options_.order == reuse_order::oldest_first))
        while (place != idle_.begin() && std::prev(place)->since_ >= s.since_)
            --place;
    s.phase_ = slot_phase::idle;
    idle_.insert(place, s);
    expect(s);
}

void resource_pool_machine::settle(pool_slot& s, nanoseconds now) noexcept
{
    eviction_reason reason{};
    if (must_close(s, now, reason))
        evict(s, reason, now, true);
    else
        make_idle(s);
}

void resource_pool_machine::give_back(pool_slot& s, nanoseconds now, bool is_used) noexcept
{
    --in_use_;
    s.since_ = now;
    if (is_used) {
        s.proven_ = now;
        ++s.uses_;
    } else {
        --totals_.acquired;
    }
    eviction_reason reason{};
    if (must_close(s, now, reason))
        evict(s, reason, now, true);
    else if (has_.reset && is_used)
        begin(s, slot_phase::resetting, now);
    else
        make_idle(s);
}

bool resource_pool_machine::renew(pool_slot& s, nanoseconds now) noexcept
{
    if (suspended_ || has_.reset || !is_reusable(s) || now >= s.expires_ ||
        options_.bypass_window == nanoseconds::zero() || reports_leaks())
        return false;
    ++s.uses_;
    s.since_ = s.proven_ = now;
    ++totals_.acquired;
    return true;
}

bool resource_pool_machine::give_back_timed(pool_slot& s, nanoseconds now,
                                            nanoseconds wakes_at) noexcept
{
    eviction_reason reason{};
    ++s.uses_;
    const nanoseconds since = std::exchange(s.since_, now);
    const nanoseconds proven = std::exchange(s.proven_, now);
    s.phase_ = slot_phase::idle;
    if (has_.reset || must_close(s, now, reason) || due(s) < wakes_at) [[unlikely]] {
        --s.uses_;
        s.since_ = since;
        s.proven_ = proven;
        s.phase_ = slot_phase::leased;
        return false;
    }
    --in_use_;
    make_idle(s);
    return true;
}

void resource_pool_machine::discard(pool_slot& s, nanoseconds now) noexcept
{
    --in_use_;
    evict(s, closed_ ? eviction_reason::closed : eviction_reason::discarded, now, true);
}

void resource_pool_machine::detach(pool_slot& s) noexcept
{
    --in_use_;
    evict(s, eviction_reason::detached, nanoseconds::zero(), false);
}

bool resource_pool_machine::add(pool_slot& s, nanoseconds now) noexcept
{
    if (closed_ || size() >= options_.max_size)
        return false;
    if (initial_ != 0)
        --initial_;
    intrusive_ptr_add_ref(&s);
    all_.push_back(s);
    ++creating_;
    s.is_started_ = true;
    created(s, now);
    return true;
}

void resource_pool_machine::plan(nanoseconds now, std::size_t waiting) noexcept
{
    ++turn_;
    awaits_retry_ = false;
    if (suspended_ || closed_)
        return;
    // A creation is no reason to leave a resource idle that a caller may have.
    std::size_t supply = checking_ + resetting_;
    for (; waiting > supply && !idle_.empty(); ++supply) {
        pool_slot& s = next_idle();
        leave_idle(s);
        s.is_background_check_ = false;
        begin(s, slot_phase::checking, now);
    }
    supply += creating_ + creations_due_;
    const std::size_t limit = is_down_ ? 1 : options_.max_creating;
    while (size() < options_.max_size && creating_ + creations_due_ < limit &&
           (waiting > supply || live() < options_.min_size || initial_ != 0)) {
        if (now < retry_at_) {
            awaits_retry_ = true;
            return;
        }
        if (initial_ != 0)
            --initial_;
        ++creations_due_;
        ++supply;
    }
}

std::size_t& resource_pool_machine::running(slot_phase phase) noexcept
{
    switch (phase) {
    case slot_phase::checking:
        return checking_;
    case slot_phase::resetting:
        return resetting_;
    case slot_phase::closing:
        return closing_;
    default:
        return creating_;
    }
}

nanoseconds resource_pool_machine::timeout(slot_phase phase) const noexcept
{
    switch (phase) {
    case slot_phase::checking:
        return options_.check_timeout;
    case slot_phase::resetting:
        return options_.reset_timeout;
    case slot_phase::closing:
        return options_.close_timeout;
    default:
        return options_.create_timeout;
    }
}

// The operation of the slot's new phase begins; the caller starts it, or queues the start.
void resource_pool_machine::arm(pool_slot& s, slot_phase phase, nanoseconds now) noexcept
{
    s.phase_ = phase;
    s.is_started_ = true;
    s.deadline_ = saturating_add(now, timeout(phase));
    ++running(phase);
    operations_wake_ = std::min(operations_wake_, s.deadline_);
}

void resource_pool_machine::begin(pool_slot& s, slot_phase phase, nanoseconds now) noexcept
{
    arm(s, phase, now);
    s.is_started_ = false;
    starts_.push_back(s);
}

void resource_pool_machine::end_operation(pool_slot& s) noexcept
{
    --running(s.phase_);
    if (!s.is_started_)
        starts_.erase(starts_.iterator_to(s));
    if (creating_ + checking_ + resetting_ + closing_ == 0)
        operations_wake_ = never;
}

bool resource_pool_machine::begin_creation(pool_slot& s, nanoseconds now) noexcept
{
    if (!has_creations())
        return false;
    --creations_due_;
    intrusive_ptr_add_ref(&s);
    all_.push_back(s);
    s.round_ = round_;
    arm(s, slot_phase::creating, now);
    return true;
}

pool_slot_ptr resource_pool_machine::next_start() noexcept
{
    if (starts_.empty())
        return nullptr;
    pool_slot& s = starts_.front();
    starts_.pop_front();
    s.is_started_ = true;
    return &s;
}

void resource_pool_machine::release(pool_slot& s) noexcept
{
    if (s.phase_ == slot_phase::idle)
        leave_idle(s);
    else if (is_operation(s.phase_))
        end_operation(s);
    s.phase_ = slot_phase::gone;
    all_.erase(all_.iterator_to(s));
    released_.push_back(s);
    if (all_.empty())
        slots_wake_ = never;
}

// No operation uses the resource: its place is free when it is destroyed.
void resource_pool_machine::release_after_destruction(pool_slot& s) noexcept
{
    release(s);
    s.keeps_place_ = true;
    ++destroying_;
}

// The slot is in no list but all_, and no operation runs.
void resource_pool_machine::evict(pool_slot& s, eviction_reason reason, nanoseconds now,
                                  bool may_close) noexcept
{
    s.phase_ = slot_phase::leased; // in no list of work
    ++totals_.evicted_by[static_cast<std::size_t>(reason)];
    events_.on_event({.kind = resource_pool_event_kind::evicted, .reason = reason});
    if (!may_close)
        release(s);
    else if (has_.close)
        begin(s, slot_phase::closing, now);
    else
        release_after_destruction(s);
}

void resource_pool_machine::created(pool_slot& s, nanoseconds now) noexcept
{
    s.phase_ = slot_phase::creating;
    end_operation(s);
    s.since_ = s.proven_ = now;
    s.turn_ = turn_;
    s.expires_ = never;
    if (options_.max_lifetime != never) {
        const auto lifetime = options_.max_lifetime.count();
        const auto jitter =
            static_cast<std::int64_t>(static_cast<double>(lifetime) * options_.lifetime_jitter);
        s.expires_ = saturating_add(now, nanoseconds(lifetime - random_.between(0, jitter)));
    }
    ++totals_.created;
    failed_checks_ = 0;
    events_.on_event({.kind = resource_pool_event_kind::created});
    if (std::exchange(is_down_, false)) {
        ++round_;
        retry_at_ = nanoseconds::min();
        backoff_ = backoff_machine(options_.create_backoff, random_.next());
        events_.on_event({.kind = resource_pool_event_kind::recovered});
    }
    settle(s, now);
    if (options_.idle_timeout != never) { // idle ones may be above the minimum since now
        for (const pool_slot& idle : idle_)
            expect(idle);
    }
}

// Creations that ran together fail together: only the first failure of a round delays the next.
void resource_pool_machine::note_failure(std::uint32_t round, nanoseconds now,
                                         const error_code& cause) noexcept
{
    ++totals_.failed;
    events_.on_event({.kind = resource_pool_event_kind::create_failed, .error = cause});
    if (round != round_)
        return;
    ++round_;
    is_down_ = true;
    retry_at_ = saturating_add(now, backoff_.next());
}

void resource_pool_machine::creation_failed(pool_slot& s, nanoseconds now,
                                            const error_code& cause) noexcept
{
    note_failure(s.round_, now, cause);
    release(s);
}

void resource_pool_machine::creation_failed(nanoseconds now, const error_code& cause) noexcept
{
    if (creations_due_ == 0)
        return;
    --creations_due_;
    note_failure(round_, now, cause);
}

// The backend has probably restarted: the idle resources are broken, too.
void resource_pool_machine::note_failed_check(nanoseconds now) noexcept
{
    if (++failed_checks_ < max_failed_checks)
        return;
    failed_checks_ = 0;
    for (auto it = idle_.begin(); it != idle_.end();) {
        pool_slot& s = *it++;
        if (!needs_check(s, now) && options_.bypass_window != never)
            continue;
        leave_idle(s);
        evict(s, eviction_reason::check_failed, now, true);
    }
}

void resource_pool_machine::checked(pool_slot& s, nanoseconds now, bool is_usable) noexcept
{
    end_operation(s);
    if (is_usable) {
        failed_checks_ = 0;
        s.proven_ = now;
        s.turn_ = turn_;
        return settle(s, now);
    }
    evict(s, eviction_reason::check_failed, now, true);
    note_failed_check(now);
}

void resource_pool_machine::reset_ended(pool_slot& s, nanoseconds now, bool succeeded) noexcept
{
    end_operation(s);
    if (!succeeded)
        return evict(s, eviction_reason::reset_failed, now, true);
    s.since_ = s.proven_ = now;
    settle(s, now);
}

void resource_pool_machine::closed(pool_slot& s) noexcept { release_after_destruction(s); }

nanoseconds resource_pool_machine::due(const pool_slot& s) const noexcept
{
    if (s.phase_ == slot_phase::leased)
        return options_.leak_threshold == never || s.is_reported_
                   ? never
                   : saturating_add(s.since_, options_.leak_threshold);
    nanoseconds first = s.expires_;
    if (options_.check_interval != never && !suspended_)
        first = std::min(first, saturating_add(s.proven_, options_.check_interval));
    if (options_.idle_timeout != never && live() > options_.min_size)
        first = std::min(first, saturating_add(s.since_, options_.idle_timeout));
    return first;
}

void resource_pool_machine::expect(const pool_slot& s) noexcept
{
    slots_wake_ = std::min(slots_wake_, due(s));
}

std::size_t resource_pool_machine::expire(nanoseconds now) noexcept
{
    std::size_t failed_creations = 0;
    std::size_t failed_checks = 0;
    for (auto it = all_.begin(); it != all_.end();) {
        pool_slot& s = *it++;
        const slot_phase phase = s.phase_;
        if (is_operation(phase)) {
            if (now < s.deadline_)
                continue;
            switch (phase) {
            case slot_phase::creating:
                note_failure(s.round_, now, errc::timed_out);
                ++failed_creations;
                release(s);
                break;
            case slot_phase::checking:
                end_operation(s);
                evict(s, eviction_reason::check_failed, now, false);
                ++failed_checks;
                break;
            case slot_phase::resetting:
                end_operation(s);
                evict(s, eviction_reason::reset_failed, now, false);
                break;
            default:
                release(s);
            }
        } else if (now < due(s)) {
            continue;
        } else if (phase == slot_phase::leased) {
            s.is_reported_ = true;
            ++totals_.overdue;
            events_.on_event({.kind = resource_pool_event_kind::lease_overdue,
                              .held = saturating_sub(now, s.since_),
                              .acquired_at = s.where});
        } else {
            leave_idle(s);
            if (now >= s.expires_)
                evict(s, eviction_reason::max_lifetime, now, true);
            else if (live() > options_.min_size &&
                     now >= saturating_add(s.since_, options_.idle_timeout))
                evict(s, eviction_reason::idle_timeout, now, true);
            else {
                s.is_background_check_ = true;
                begin(s, slot_phase::checking, now);
            }
        }
    }
    for (; failed_checks != 0; --failed_checks)
        note_failed_check(now);
    operations_wake_ = slots_wake_ = never;
    for (const pool_slot& s : all_) {
        nanoseconds& wake = is_operation(s.phase_) ? operations_wake_ : slots_wake_;
        wake = std::min(wake, is_operation(s.phase_) ? s.deadline_ : due(s));
    }
    return failed_creations;
}

nanoseconds resource_pool_machine::wake_time() const noexcept
{
    const nanoseconds wake = std::min(operations_wake_, slots_wake_);
    return awaits_retry_ ? std::min(wake, retry_at_) : wake;
}

bool resource_pool_machine::resize(std::size_t max_size, nanoseconds now) noexcept
{
    if (max_size == 0 || max_size < options_.min_size)
        return false;
    options_.max_size = max_size;
    creations_due_ -= std::min(creations_due_, live() - std::min(live(), max_size));
    while (live() > max_size && !idle_.empty()) {
        pool_slot& s = idle_.front();
        leave_idle(s);
        evict(s, eviction_reason::resized, now, true);
    }
    return true;
}

void resource_pool_machine::set_suspended(bool suspended) noexcept
{
    suspended_ = suspended;
    for (auto it = starts_.begin(); suspended && it != starts_.end();) {
        pool_slot& s = *it++;
        if (s.phase_ != slot_phase::checking)
            continue;
        end_operation(s); // the check has not started
        make_idle(s);
    }
}

void resource_pool_machine::evict_idle(nanoseconds now) noexcept
{
    while (!idle_.empty()) {
        pool_slot& s = idle_.front();
        leave_idle(s);
        evict(s, closed_ ? eviction_reason::closed : eviction_reason::requested, now, true);
    }
}

void resource_pool_machine::close(nanoseconds now) noexcept
{
    if (std::exchange(closed_, true))
        return;
    creations_due_ = initial_ = 0;
    awaits_retry_ = false;
    for (auto it = all_.begin(); it != all_.end();) {
        pool_slot& s = *it++;
        if (s.phase_ == slot_phase::creating)
            release(s);
    }
    evict_idle(now);
}

void resource_pool_machine::abandon() noexcept
{
    creations_due_ = 0;
    for (auto it = all_.begin(); it != all_.end();) {
        pool_slot& s = *it++;
        if (s.phase_ != slot_phase::leased)
            release(s);
    }
}

void resource_pool_machine::write(resource_pool_stats& stats) const noexcept
{
    stats = totals_;
    stats.size = size();
    stats.idle = idle_.size();
    stats.in_use = in_use_;
    stats.creating = creating_ + creations_due_;
    stats.is_down = is_down_;
}

} // namespace turnstile::inline v0_1::detail
