// SPDX-License-Identifier: BSL-1.0
// When to try again: settings, and the decisions as a state machine without I/O.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/backoff.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1 {

/// What a listener is told before each retry.
struct retry_event {
    std::uint32_t attempt; ///< The one that has failed; the first is 1.
    nanoseconds delay;     ///< Until the next.
    failure error;         ///< What it failed with; none if a result was not to one's liking.
};

/// Why there was no retry.
enum class retry_refusal {
    none,          ///< There is one.
    not_retryable, ///< The predicate said no, or it was cancelled.
    attempts,      ///< That was the last attempt allowed.
    deadline,      ///< The next attempt would begin after the total time.
    budget,        ///< The shared budget is spent.
};

template <>
inline constexpr auto detail::enum_names<retry_refusal> =
    std::to_array<std::string_view>({"none", "not_retryable", "attempts", "deadline", "budget"});

/// What does not depend on the operation's result.
struct retry_settings {
    std::uint32_t attempts = 3;
    turnstile::backoff delays = turnstile::backoff::exponential(std::chrono::milliseconds(100))
                                    .capped(std::chrono::seconds(10))
                                    .with_full_jitter();
    nanoseconds each = nanoseconds::max();
    nanoseconds total = nanoseconds::max();
    std::optional<std::uint64_t> seed;
    std::shared_ptr<retry_budget> budget;
    std::function<void(const retry_event&)> listener;
};

/// The attempts of one call: time goes in, decisions come out.
class retry_sequence {
public:
    struct decision {
        retry_refusal refusal;
        nanoseconds delay; ///< If it is not refused.
    };

    TURNSTILE_EXPORT retry_sequence(const retry_settings& settings, nanoseconds now,
                                    std::uint64_t seed) noexcept;

    /// The attempt that is under way, from 1.
    std::uint32_t attempt() const noexcept { return attempt_; }

    /// The time the next attempt may take: its own limit, or what is left of the total.
    TURNSTILE_EXPORT nanoseconds limit(nanoseconds now) const noexcept;

    /// An attempt has failed. `hint` is the server's idea of when to come back, and counts
    /// instead of the delay. If the decision is to try again, the next attempt has begun.
    TURNSTILE_EXPORT decision failed(nanoseconds now, bool retryable,
                                     std::optional<nanoseconds> hint) noexcept;

    /// The attempt that was decided on does not take place after all: the one before is the last,
    /// and the budget gets its token back.
    TURNSTILE_EXPORT void take_back() noexcept;

private:
    std::uint32_t attempts_;
    std::uint32_t attempt_ = 1;
    nanoseconds each_;
    nanoseconds deadline_;
    retry_budget* budget_;
    backoff_sequence delays_;
};

namespace detail {

// Retries every failure that is not a programming error. Refusals need a hint as well, which is
// for retry_supervisor to see. A cancellation is never retried, whatever the predicate says.
struct retry_transient_failures {
    TURNSTILE_EXPORT bool operator()(const failure& f) const noexcept;
};

// What a `rejection` of ours says, if the failure is one.
struct rejection_hint {
    TURNSTILE_EXPORT std::optional<nanoseconds> operator()(const failure& f) const noexcept;
};

} // namespace detail

/// How to retry: `retry_policy().attempts(5).timeout_each(1s).retry_if(is_transient)`.
/// A value; each function returns a changed copy.
template <class RetryIf = detail::retry_transient_failures, class Hint = detail::rejection_hint>
class basic_retry_policy {
public:
    basic_retry_policy() = default;
    basic_retry_policy(retry_settings settings, RetryIf retry_if, Hint hint)
        : settings_(std::move(settings)), retry_if_(std::move(retry_if)), hint_(std::move(hint))
    {
    }

    /// Attempts in all, the first included; at least one, whatever is given. Default: 3.
    basic_retry_policy attempts(std::uint32_t n) const
    {
        return changed([&](retry_settings& s) { s.attempts = n; });
    }
    /// As many as it takes, or as time and budget allow.
    basic_retry_policy unlimited_attempts() const
    {
        return attempts(std::numeric_limits<std::uint32_t>::max());
    }
    /// Delays between attempts. Default: exponential from 100 ms to 10 s, with full jitter.
    basic_retry_policy backoff(const turnstile::backoff& rule) const
    {
        return changed([&](retry_settings& s) { s.delays = rule; });
    }
    /// The time an attempt may take; then it is cancelled, and has failed with `timed_out`.
    template <class Rep, class Period>
    basic_retry_policy timeout_each(std::chrono::duration<Rep, Period> limit) const
    {
        return changed([&](retry_settings& s) { s.each = saturating_nanoseconds(limit); });
    }
    /// The time for everything. An attempt that is under way then is cancelled; one that
    /// could only begin after it is not waited for.
    template <class Rep, class Period>
    basic_retry_policy timeout_total(std::chrono::duration<Rep, Period> limit) const
    {
        return changed([&](retry_settings& s) { s.total = saturating_nanoseconds(limit); });
    }
    /// A budget, usually shared with other policies.
    basic_retry_policy budget(std::shared_ptr<retry_budget> b) const
    {
        return changed([&](retry_settings& s) { s.budget = std::move(b); });
    }
    /// Is called before each retry, on the handler's executor, without any lock.
    basic_retry_policy on_retry(std::function<void(const retry_event&)> listener) const
    {
        return changed([&](retry_settings& s) { s.listener = std::move(listener); });
    }
    /// Makes jitter repeatable: the n-th call of an object has the same delays each time.
    basic_retry_policy seed(std::uint64_t n) const
    {
        return changed([&](retry_settings& s) { s.seed = n; });
    }

    /// What is worth another attempt: called with a `failure`, or with the whole result, as
    /// const references. A cancellation never is. Default: every failure, except
    /// - programming errors: `errc::invalid_argument`, `too_large`, `not_locked`, `over_release`,
    ///   `negative_count`, `over_count` and `context_mismatch`; `std::logic_error` and what derives
    ///   from it; an access to an empty optional, function or variant, and a bad cast;
    /// - refusals (`is_refusal`) for which `retry_after` gives no delay.
    template <class F>
    auto retry_if(F predicate) const
    {
        return basic_retry_policy<F, Hint>(settings_, std::move(predicate), hint_);
    }
    /// When the server says to come back: called like `retry_if`, for what is retried; returns
    /// an optional duration. Default: `retry_after` of a `rejection`, where that is thrown and
    /// the stage could say.
    template <class F>
    auto retry_after(F hint) const
    {
        return basic_retry_policy<RetryIf, F>(settings_, retry_if_, std::move(hint));
    }

    const retry_settings& settings() const noexcept { return settings_; }
    const RetryIf& predicate() const noexcept { return retry_if_; }
    const Hint& hint() const noexcept { return hint_; }

private:
    template <class Change>
    basic_retry_policy changed(Change change) const
    {
        basic_retry_policy p = *this;
        change(p.settings_);
        return p;
    }

    retry_settings settings_;
    RetryIf retry_if_;
    Hint hint_;
};

using retry_policy = basic_retry_policy<>;

} // namespace turnstile::inline v0_1
