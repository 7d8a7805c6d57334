// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>

#include <algorithm>

namespace turnstile::inline v0_1 {
namespace {

// Returns the rule that the options break, or null.
const char* broken_rule(const aimd_options& o) noexcept
{
    if (o.minimum == 0 || o.minimum > o.maximum)
        return "aimd_options: minimum must be in [1, maximum]";
    if (o.maximum >= limit_bound)
        return "aimd_options: maximum must be less than limit_bound";
    if (!(o.increase > 0)) // also true for NaN
        return "aimd_options: increase must be positive";
    if (!(o.backoff > 0 && o.backoff < 1))
        return "aimd_options: backoff must be in (0, 1)";
    if (o.timeout <= nanoseconds::zero())
        return "aimd_options: timeout must be positive";
    return nullptr;
}

const char* broken_rule(const gradient_options& o) noexcept
{
    if (o.minimum == 0 || o.minimum > o.maximum)
        return "gradient_options: minimum must be in [1, maximum]";
    if (o.maximum >= limit_bound)
        return "gradient_options: maximum must be less than limit_bound";
    if (!(o.tolerance >= 1))
        return "gradient_options: tolerance must be 1 or more";
    if (!(o.smoothing > 0 && o.smoothing <= 1))
        return "gradient_options: smoothing must be in (0, 1]";
    if (!(o.head_room >= 0))
        return "gradient_options: head_room must not be negative";
    if (o.window == 0)
        return "gradient_options: window must not be 0";
    return nullptr;
}

template <class Options>
const Options& checked(const Options& options)
{
    detail::throw_if_wrong(broken_rule(options));
    return options;
}

template <class Options>
double within_bounds(const Options& o, double limit) noexcept
{
    return std::clamp(limit, static_cast<double>(o.minimum), static_cast<double>(o.maximum));
}

nanoseconds latency_of(const limit_sample& sample) noexcept
{
    return std::max(nanoseconds(1), saturating_sub(sample.finished, sample.started));
}

// Smallest factor that the limit is multiplied by in one step.
constexpr double steepest = 0.5;

// Whether too few calls are outstanding for their latency to depend on the limit.
bool is_idle(const limit_sample& sample, double limit) noexcept
{
    return static_cast<double>(sample.in_flight) * 2 < limit;
}

} // namespace

// -------------------------------------------------------------------------- AIMD ----

bool aimd_machine::valid(const aimd_options& o) noexcept { return broken_rule(o) == nullptr; }

aimd_machine::aimd_machine(const aimd_options& options, std::uint64_t initial)
    : options_(checked(options)), limit_(within_bounds(options, static_cast<double>(initial)))
{
}

std::uint64_t aimd_machine::update(const limit_sample& sample) noexcept
{
    if (sample.dropped || latency_of(sample) > options_.timeout) {
        // Calls that were outstanding together have the same cause.
        if (sample.started >= last_decrease_) {
            limit_ = within_bounds(options_, limit_ * options_.backoff);
            last_decrease_ = sample.finished;
        }
    } else if (!is_idle(sample, limit_)) {
        limit_ = within_bounds(options_, limit_ + options_.increase / limit_);
    }
    return limit();
}

// ---------------------------------------------------------------------- gradient ----

bool gradient_machine::valid(const gradient_options& o) noexcept
{
    return broken_rule(o) == nullptr;
}

gradient_machine::gradient_machine(const gradient_options& options, std::uint64_t initial)
    : options_(checked(options)), limit_(within_bounds(options, static_cast<double>(initial)))
{
}

// An arithmetic mean of the first rounds, then an exponentially weighted one.
void gradient_machine::learn_usual(double latency) noexcept
{
    constexpr std::uint32_t first = 10;
    if (learned_ < std::min(first, options_.window)) {
        ++learned_;
        usual_ += (latency - usual_) / learned_;
    } else {
        usual_ += (latency - usual_) * 2.0 / (options_.window + 1.0);
    }
    // Speeds up the return to normal after a slow period.
    if (usual_ > 2 * latency)
        usual_ *= 0.95;
}

std::uint64_t gradient_machine::update(const limit_sample& sample) noexcept
{
    if (sample.started < round_started_)
        return limit(); // it started under an earlier limit
    if (sample.dropped) {
        move_by(steepest, 0);
        begin_round(sample.finished);
        return limit();
    }
    latencies_ += static_cast<double>(latency_of(sample).count());
    is_used_ = is_used_ || !is_idle(sample, limit_);
    if (static_cast<double>(++calls_) * 2 < limit_)
        return limit();

    const double latency = latencies_ / static_cast<double>(calls_);
    learn_usual(latency);
    if (is_used_)
        move_by(std::clamp(options_.tolerance * usual_ / latency, steepest, 1.0),
                options_.head_room);
    begin_round(sample.finished);
    return limit();
}

void gradient_machine::move_by(double gradient, double head_room) noexcept
{
    const double estimate = limit_ * gradient + head_room;
    limit_ = within_bounds(options_, limit_ + (estimate - limit_) * options_.smoothing);
}

void gradient_machine::begin_round(nanoseconds now) noexcept
{
    round_started_ = now;
    latencies_ = 0;
    calls_ = 0;
    is_used_ = false;
}

nanoseconds gradient_machine::usual_latency() const noexcept
{
    return saturating_nanoseconds(std::chrono::duration<double, std::nano>(usual_));
}

// ------------------------------------------------------------------------ either ----

namespace detail {
namespace {

using some_limit = std::variant<std::uint64_t, aimd_machine, gradient_machine>;

some_limit make_limit(const limit_options& options, std::uint64_t initial)
{
    if (const auto* aimd = std::get_if<aimd_options>(&options))
        return aimd_machine(*aimd, initial);
    if (const auto* gradient = std::get_if<gradient_options>(&options))
        return gradient_machine(*gradient, initial);
    return initial;
}

} // namespace

limit_machine::limit_machine(const limit_options& options, std::uint64_t initial)
    : limit_(make_limit(options, initial))
{
}

std::uint64_t limit_machine::limit() const noexcept
{
    if (const auto* aimd = std::get_if<aimd_machine>(&limit_))
        return aimd->limit();
    if (const auto* gradient = std::get_if<gradient_machine>(&limit_))
        return gradient->limit();
    return std::get<std::uint64_t>(limit_);
}

std::uint64_t limit_machine::update(const limit_sample& sample) noexcept
{
    if (auto* aimd = std::get_if<aimd_machine>(&limit_))
        return aimd->update(sample);
    if (auto* gradient = std::get_if<gradient_machine>(&limit_))
        return gradient->update(sample);
    return limit();
}

} // namespace detail
} // namespace turnstile::inline v0_1
