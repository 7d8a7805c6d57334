#include <turnstile/core/error.hpp>
#include <turnstile/resilience/backoff.hpp>

#include <algorithm>

namespace turnstile {

backoff::backoff(kind k, nanoseconds first, double factor, nanoseconds step)
    : kind_(k), first_(first), step_(step), factor_(factor)
{
    const bool shrinks = k == kind::exponential && !(factor >= 1); // or not a number
    if (first < nanoseconds::zero() || step < nanoseconds::zero() || shrinks)
        detail::throw_error(errc::invalid_argument, "backoff");
}

backoff backoff::with_cap(nanoseconds longest) const
{
    if (longest < nanoseconds::zero())
        detail::throw_error(errc::invalid_argument, "backoff::capped");
    backoff b = *this;
    b.cap_ = longest;
    return b;
}

nanoseconds backoff_sequence::next() noexcept
{
    last_ = std::min(grown(), rule_.cap_);
    if (!rule_.full_jitter_)
        return last_;
    return nanoseconds(random_.between(0, last_.count()));
}

nanoseconds backoff_sequence::grown() noexcept
{
    if (rule_.kind_ == backoff::kind::decorrelated) {
        // As if the delay before the first had been `first`.
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

} // namespace turnstile
