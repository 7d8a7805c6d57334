// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/hedge_machine.hpp>

namespace turnstile::inline v0_1 {
namespace {

// Returns the rule that the options break, or null.
const char* broken_rule(const hedge_options& o) noexcept
{
    if (o.delay < nanoseconds::zero())
        return "hedge: delay must not be negative";
    if (o.percentile && !(*o.percentile > 0 && *o.percentile <= 1)) // also true for NaN
        return "hedge: percentile must be in (0, 1]";
    if (o.max_attempts == 0 || o.max_attempts > 16)
        return "hedge: max_attempts must be in [1, 16]";
    return nullptr;
}

const hedge_options& checked(const hedge_options& options)
{
    detail::throw_if_wrong(broken_rule(options));
    return options;
}

} // namespace

hedge_machine::hedge_machine(const hedge_options& options) : options_(checked(options)) {}

nanoseconds hedge_machine::delay() const noexcept
{
    if (!options_.percentile || latencies_.samples() < hedge_options::samples_needed)
        return options_.delay;
    return latencies_.percentile(*options_.percentile).value_or(options_.delay);
}

} // namespace turnstile::inline v0_1
