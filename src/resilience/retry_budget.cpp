// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/detail/util/checked_arithmetic.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace turnstile::inline v0_1 {
namespace {

constexpr std::int64_t token = 1'000'000;
constexpr double most_tokens = 1e12; // the sum of two balances does not overflow

std::int64_t checked(double tokens, double least, const char* rule)
{
    if (!(tokens >= least)) // also true for NaN
        detail::throw_error(errc::invalid_argument, rule);
    return static_cast<std::int64_t>(std::min(tokens, most_tokens) * token);
}

} // namespace

retry_budget::retry_budget(const retry_budget_options& o)
    : per_call_(checked(o.per_call, 0, "retry_budget: per_call must not be negative")),
      per_second_(checked(o.per_second, 0, "retry_budget: per_second must not be negative")),
      capacity_(checked(o.capacity, 1, "retry_budget: capacity must be 1 or more")),
      balance_(capacity_), listeners_(std::make_shared<listeners_type>())
{
}

retry_budget::~retry_budget() { listeners_->close(); }

template <class F>
bool retry_budget::update(F f) noexcept
{
    std::shared_ptr<listeners_type> pending; // a listener may destroy the budget
    const bool result = [&] {
        const std::lock_guard lock(mutex_);
        const bool returned = f();
        if (listeners_->has_pending_events())
            pending = listeners_;
        return returned;
    }();
    if (pending)
        pending->dispatch();
    return result;
}

void retry_budget::deposit(nanoseconds now) noexcept
{
    update([&] {
        refill(now);
        add(per_call_);
        ++deposits_;
        if (balance_ >= token)
            note(false);
        return true;
    });
}

bool retry_budget::withdraw(nanoseconds now) noexcept
{
    return update([&] {
        refill(now);
        const bool enough = balance_ >= token;
        balance_ -= enough ? token : 0;
        ++(enough ? withdrawals_ : refusals_);
        note(!enough);
        return enough;
    });
}

void retry_budget::refund() noexcept
{
    update([&] {
        add(token);
        --withdrawals_;
        note(false);
        return true;
    });
}

listener_id retry_budget::add_listener(std::function<void(const retry_budget_event&)> listener)
{
    return listeners_->add(std::move(listener));
}

bool retry_budget::remove_listener(listener_id id) noexcept { return listeners_->remove(id); }

std::uint64_t retry_budget::dropped_events() const noexcept { return listeners_->dropped(); }

retry_budget_stats retry_budget::stats() const noexcept
{
    const std::lock_guard lock(mutex_);
    return {deposits_, withdrawals_, refusals_, static_cast<double>(balance_) / token};
}

void retry_budget::note(bool exhausted) noexcept
{
    if (std::exchange(exhausted_, exhausted) != exhausted)
        listeners_->publish(exhausted ? retry_budget_event::exhausted
                                      : retry_budget_event::available);
}

void retry_budget::refill(nanoseconds now) noexcept
{
    constexpr std::uint64_t second = 1'000'000'000;
    if (refilled_ == nanoseconds::min())
        refilled_ = now;
    const nanoseconds passed = saturating_sub(now, refilled_);
    if (passed <= nanoseconds::zero() || per_second_ == 0)
        return;
    const auto rate = static_cast<std::uint64_t>(per_second_);
    const std::uint64_t earned =
        detail::multiply_divide(static_cast<std::uint64_t>(passed.count()), rate, second, false);
    if (earned >= static_cast<std::uint64_t>(capacity_ - balance_)) {
        balance_ = capacity_;
        refilled_ = now;
        return;
    }
    // Time too short for a millionth of a token is kept for the next call.
    balance_ += static_cast<std::int64_t>(earned);
    refilled_ += nanoseconds(
        static_cast<std::int64_t>(detail::multiply_divide(earned, second, rate, false)));
}

void retry_budget::add(std::int64_t amount) noexcept
{
    balance_ = std::min(capacity_, balance_ + amount);
}

} // namespace turnstile::inline v0_1
