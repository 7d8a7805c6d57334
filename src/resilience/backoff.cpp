// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/backoff.hpp>

#include <algorithm>

namespace turnstile::inline v0_1 {

backoff::backoff(kind k, nanoseconds first, double factor, nanoseconds step)
    : kind_(k), first_(first), step_(step), factor_(factor)
{
    if (first < nanoseconds::zero())
        detail::throw_error(errc::invalid_argument,
                            "backoff: the first delay must not be negative");
    if (step < nanoseconds::zero())
        detail::throw_error(errc::invalid_argument, "backoff: step must not be negative");
    if (k == kind::exponential && !(factor >= 1)) // also true for NaN
        detail::throw_error(errc::invalid_argument, "backoff: factor must be 1 or more");
}

backoff backoff::with_cap(nanoseconds longest) const
{
    if (longest < nanoseconds::zero())
        detail::throw_error(errc::invalid_argument, "backoff: the cap must not be negative");
    backoff b = *this;
    b.cap_ = longest;
    return b;
}

nanoseconds backoff_machine::next() noexcept
{
    last_ = std::min(grown(), rule_.cap_);
    if (!rule_.full_jitter_)
        return last_;
    return nanoseconds(random_.between(0, last_.count()));
}

nanoseconds backoff_machine::grown() noexcept
{
    if (rule_.kind_ == backoff::kind::decorrelated) {
        // Before the first delay, `first` counts as the previous one.
        const nanoseconds before = std::max(last_, rule_.first_);
        const nanoseconds most = std::min(saturating_mul(before, 3), rule_.cap_);
        const nanoseconds least = std::min(rule_.first_, most);
        return nanoseconds(random_.between(least.count(), most.count()));
    }
    if (last_ < nanoseconds::zero())
        return rule_.first_;
    if (rule_.kind_ == backoff::kind::linear)
        return saturating_add(last_, rule_.step_);
    return saturating_nanoseconds(std::chrono::duration<long double, std::nano>(last_) *
                                  static_cast<long double>(rule_.factor_));
}

} // namespace turnstile::inline v0_1
