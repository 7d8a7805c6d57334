// SPDX-License-Identifier: BSL-1.0
// A retry budget limits the retries of many calls together, so that retries do not multiply the
// load on a service that fails.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/util/listener_list.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace turnstile::inline v0_1 {

/// Options of a retry budget. The constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct retry_budget_options {
    /// Tokens that each call adds: 0.2 is one retry for five calls. Must not be negative.
    double per_call = 0.2;
    /// Tokens that each second adds, for clients with few calls. Must not be negative.
    double per_second = 1;
    /// Maximum number of tokens: the retries of one burst. Must be 1 or more.
    double capacity = 10;
};

/// A change of a retry budget.
enum class retry_budget_event {
    exhausted, ///< A retry was refused, and the one before was not.
    available, ///< A retry or a call has found a token after a refusal.
};

template <>
inline constexpr auto detail::enum_names<retry_budget_event> =
    std::to_array<std::string_view>({"exhausted", "available"});

/// The figures of a retry budget at one time. Totals count from its construction.
struct retry_budget_stats {
    std::uint64_t deposits;    ///< Total of calls.
    std::uint64_t withdrawals; ///< Total of retries that were allowed, less refunds.
    std::uint64_t refusals;    ///< Total of retries that were refused.
    double balance;            ///< Tokens after the most recent call or retry.
};

/// A bucket of tokens, shared by any number of retries and hedges. Each call adds a part of a
/// token, each second adds some, and each retry or further attempt takes one. Without a token there
/// is no retry, and the call completes with its failure. The bucket is full at first.
///
/// Times are counted from an arbitrary origin; a time before the latest one adds nothing.
///
/// Listeners receive each change as a `retry_budget_event`.
///
/// @par Thread safety
/// Any thread may call any function.
class retry_budget {
public:
    /// A full bucket.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    TURNSTILE_EXPORT explicit retry_budget(const retry_budget_options& options = {});
    retry_budget(const retry_budget&) = delete;
    retry_budget& operator=(const retry_budget&) = delete;
    TURNSTILE_EXPORT ~retry_budget();

    /// Adds the tokens of a call that begins.
    TURNSTILE_EXPORT void deposit(nanoseconds now) noexcept;
    /// Takes the token for a retry. Returns false if there is none.
    [[nodiscard]] TURNSTILE_EXPORT bool withdraw(nanoseconds now) noexcept;
    /// Returns the token of a retry that was allowed but does not take place.
    TURNSTILE_EXPORT void refund() noexcept;

    /// The figures of the budget at this time.
    TURNSTILE_EXPORT retry_budget_stats stats() const noexcept;

    /// Registers a listener. It is called for each event, in order and one at a time, on the thread
    /// that raised the event, or on one that is already dispatching events. It is never called
    /// under a lock, so it may call the budget, or destroy it. Exceptions that it throws are
    /// dropped.
    TURNSTILE_EXPORT listener_id
    add_listener(std::function<void(const retry_budget_event&)> listener);
    /// Removes a listener, also from inside a listener. Returns false if `id` is not registered.
    TURNSTILE_EXPORT bool remove_listener(listener_id id) noexcept;
    /// The number of events that were dropped although a listener was registered: listeners were
    /// too slow, or memory was exhausted.
    [[nodiscard]] TURNSTILE_EXPORT std::uint64_t dropped_events() const noexcept;

private:
    using listeners_type = detail::listener_list<retry_budget_event, thread_safe>;

    // Runs f() under the lock, and then calls the listeners. Returns the result of f().
    template <class F>
    bool update(F f) noexcept;
    void note(bool exhausted) noexcept;
    void refill(nanoseconds now) noexcept;
    void add(std::int64_t amount) noexcept;

    // In millionths of a token.
    std::int64_t per_call_;
    std::int64_t per_second_;
    std::int64_t capacity_;

    mutable detail::spin_mutex mutex_;
    std::int64_t balance_;
    nanoseconds refilled_{nanoseconds::min()}; // the tokens of the time before it have been added
    std::uint64_t deposits_ = 0;
    std::uint64_t withdrawals_ = 0;
    std::uint64_t refusals_ = 0;
    bool exhausted_ = false;
    const std::shared_ptr<listeners_type> listeners_;
};

} // namespace turnstile::inline v0_1
