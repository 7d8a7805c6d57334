// SPDX-License-Identifier: BSL-1.0
// A limit on retries over many calls, so that they do not make an outage worse.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>

#include <cstdint>
#include <functional>

namespace turnstile::inline v0_1 {

/// What the listeners of a retry budget are told.
enum class budget_event {
    exhausted, ///< A retry was refused, and none had been before.
    available, ///< There are tokens again, as a call or a retry has found.
};

template <>
inline constexpr auto
    detail::enum_names<budget_event> = std::to_array<std::string_view>({"exhausted", "available"});

/// A bucket of tokens shared by any number of retry policies. Each call puts a part of a
/// token in, each second some, and each retry takes one out; when there is none, there is no
/// retry, and the failure is delivered as it is. The bucket is full at first.
///
/// While things go well it fills up; when every call fails, there are `per_call` retries for
/// each of them instead of two or three.
///
/// Time goes in as nanoseconds of any clock; one that goes back adds nothing.
/// Thread safety: any thread may call anything.
class retry_budget {
public:
    struct options {
        double per_call = 0.2; ///< Tokens for each call: 0.2 is one retry for five calls.
        double per_second = 1; ///< Tokens for each second, for clients with few calls.
        double capacity = 10;  ///< The most there can be, that is, retries in one burst.
    };

    struct statistics {
        std::uint64_t deposits;    ///< Calls.
        std::uint64_t withdrawals; ///< Retries that were allowed, without refunds.
        std::uint64_t refusals;    ///< Retries that were not.
        double balance;            ///< Tokens at the last look.
    };

    /// Throws `system_error` with `errc::invalid_argument` if a figure is negative or not a
    /// number, or the capacity is less than 1.
    TURNSTILE_EXPORT explicit retry_budget(const options& o);
    retry_budget() : retry_budget(options()) {}
    retry_budget(const retry_budget&) = delete;
    retry_budget& operator=(const retry_budget&) = delete;

    /// A call begins.
    TURNSTILE_EXPORT void deposit(nanoseconds now) noexcept;
    /// Takes the token for a retry; false if there is none.
    [[nodiscard]] TURNSTILE_EXPORT bool withdraw(nanoseconds now) noexcept;
    /// Puts such a token back: the retry that was allowed does not take place.
    TURNSTILE_EXPORT void refund() noexcept;

    /// What has happened so far.
    TURNSTILE_EXPORT statistics stats() const noexcept;

    /// Calls `listener` at every event, in order and one at a time, on the thread that caused it
    /// or is just telling another; never under a lock, so it may use the budget, but not
    /// destroy it. What it throws is dropped.
    TURNSTILE_EXPORT listener_id add_listener(std::function<void(const budget_event&)> listener);
    /// Removes a listener, also from inside one; false if there is none of that name.
    TURNSTILE_EXPORT bool remove_listener(listener_id id) noexcept;

private:
    void note(bool exhausted) noexcept;
    void refill(nanoseconds now) noexcept;
    void add(std::int64_t amount) noexcept;

    // In millionths of a token.
    std::int64_t per_call_;
    std::int64_t per_second_;
    std::int64_t capacity_;

    mutable detail::spin_mutex mutex_;
    std::int64_t balance_;
    nanoseconds refilled_{nanoseconds::min()}; // up to here time has been paid for
    std::uint64_t deposits_ = 0;
    std::uint64_t withdrawals_ = 0;
    std::uint64_t refusals_ = 0;
    bool exhausted_ = false;
    detail::listener_list<budget_event, thread_safe> listeners_;
};

} // namespace turnstile::inline v0_1
