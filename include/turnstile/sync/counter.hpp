// SPDX-License-Identifier: BSL-1.0
// A counter: an integer between two bounds, whose value asynchronous code can wait for.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/counter_state.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// The bounds of a counter, both inclusive. The value of the counter never leaves them.
struct counter_bounds {
    /// The lowest value. Default: 0. Rule: not less than `counter::lowest`.
    std::int64_t lower = 0;
    /// The highest value. Default: `counter::highest`. Rule: not greater than `counter::highest`,
    /// and not less than `lower`.
    std::int64_t upper = detail::counter_state<thread_safe>::highest;
};

/// An integer between two bounds. Asynchronous code waits until its value is zero, at least n, at
/// most n, or satisfies a predicate.
///
/// A waiter is granted by the first change that reaches its goal, even if the next change leaves it
/// again. A wait consumes nothing.
///
/// @par Complexity
/// A change is linear in the waits it completes and in the number of waiters with a predicate, and
/// logarithmic in the number of waiters with a threshold.
/// @par Fairness
/// One change grants the waiters with the nearest threshold first, and waiters with equal
/// thresholds in the order of their arrival; then the waiters with a predicate, in the order of
/// their arrival.
/// @par Thread safety
/// Any thread may call any function of a `counter`; a `local::counter` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_counter
    : public detail::io_object<Executor, Threading, detail::counter_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::counter_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_counter<Other, Threading>;
    };

    /// The least possible lower bound: -2^62.
    static constexpr std::int64_t lowest = detail::counter_state<Threading>::lowest;
    /// The greatest possible upper bound: 2^62 - 1.
    static constexpr std::int64_t highest = detail::counter_state<Threading>::highest;

    /// Makes a counter. Handlers without an associated executor run on `executor`. Throws
    /// `system_error` with `errc::invalid_argument` if a rule is broken.
    ///
    /// @param value The value at first. Rule: within the bounds.
    /// @param bounds See `counter_bounds`.
    explicit basic_counter(const std::type_identity_t<Executor>& executor, std::int64_t value = 0,
                           counter_bounds bounds = {})
        : base(executor, checked(value, bounds), bounds.lower, bounds.upper)
    {
    }

    /// Equivalent to `basic_counter(context.get_executor(), value, bounds)`.
    template <detail::execution_context Context>
    explicit basic_counter(Context& context, std::int64_t value = 0, counter_bounds bounds = {})
        : basic_counter(context.get_executor(), value, bounds)
    {
    }

    /// Adds n, which may be negative, grants waiters, and returns the new value. No handler runs
    /// inside this call.
    ///
    /// @par Errors
    /// `errc::over_count` if the value would rise above the upper bound, `errc::negative_count` if
    /// it would fall below the lower bound. The value is unchanged then, and is returned.
    std::int64_t add(std::int64_t n, error_code& ec) noexcept
    {
        std::int64_t value = 0;
        ec = this->state().add(n, value).error();
        return value;
    }

    /// Equivalent to `add(n, ec)`; throws `system_error` where that sets `ec`.
    std::int64_t add(std::int64_t n = 1)
    {
        error_code ec;
        const std::int64_t value = add(n, ec);
        detail::throw_if(ec, "counter::add");
        return value;
    }

    /// Subtracts n. In every other respect as `add`.
    std::int64_t sub(std::int64_t n, error_code& ec) noexcept
    {
        std::int64_t value = 0;
        ec = this->state().sub(n, value).error();
        return value;
    }

    /// Equivalent to `sub(n, ec)`; throws `system_error` where that sets `ec`.
    std::int64_t sub(std::int64_t n = 1)
    {
        error_code ec;
        const std::int64_t value = sub(n, ec);
        detail::throw_if(ec, "counter::sub");
        return value;
    }

    /// The value: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::int64_t value() const noexcept { return this->state().value(); }

    /// The bounds given at construction.
    [[nodiscard]] counter_bounds bounds() const noexcept
    {
        return {this->state().lower(), this->state().upper()};
    }

    /// Waits until the value is at least n.
    ///
    /// @par Completes when
    /// the value is at least n, or has been so at any time since the wait started.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the counter was destroyed;
    /// `errc::over_count` if n is greater than the upper bound.
    /// @par Executor
    /// The handler's associated executor, by default the counter's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing, so a cancelled wait loses nothing.
    /// @par Fairness
    /// The nearest threshold first, equal thresholds FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_at_least(std::int64_t n, Token&& token = Token())
    {
        return wait_for(detail::counter_goal::goal_kind::at_least, n, std::forward<Token>(token));
    }

    /// Waits until the value is at most n. In every other respect as `async_wait_at_least`.
    ///
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the counter was destroyed;
    /// `errc::negative_count` if n is less than the lower bound.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_at_most(std::int64_t n, Token&& token = Token())
    {
        return wait_for(detail::counter_goal::goal_kind::at_most, n, std::forward<Token>(token));
    }

    /// Waits until the value is zero or negative. Equivalent to `async_wait_at_most(0, token)`.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_zero(Token&& token = Token())
    {
        return async_wait_at_most(0, std::forward<Token>(token));
    }

    /// Waits until `predicate(value)` is true.
    ///
    /// @param predicate Called with the value when the wait starts, and then at every change, so
    /// that it sees each value: on the thread that makes the change, inside that call, and under
    /// the internal lock. It must be short, must not use the counter, and must not throw. It is
    /// copied or moved with the operation.
    ///
    /// @par Completes when
    /// the predicate has returned true.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the counter was destroyed;
    /// `errc::predicate_failed` if the predicate has thrown.
    /// @par Executor
    /// The handler's associated executor, by default the counter's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing, so a cancelled wait loses nothing.
    /// @par Fairness
    /// FIFO among the waiters with a predicate.
    template <class Predicate, token_for<void> Token = default_token_t<Executor>>
        requires std::predicate<const Predicate&, std::int64_t>
    auto async_wait(Predicate predicate, Token&& token = Token())
    {
        return detail::start_wait(
            request<detail::predicate_goal<Predicate>>{this, {std::move(predicate)}},
            std::forward<Token>(token));
    }

private:
    template <class Goal>
    using request = detail::counter_request<basic_counter, Goal>;
    template <class, class>
    friend struct detail::counter_request;

    static std::int64_t checked(std::int64_t value, const counter_bounds& bounds)
    {
        if (bounds.lower < lowest)
            detail::throw_error(errc::invalid_argument,
                                "counter: bounds.lower must not be less than counter::lowest");
        if (bounds.upper > highest)
            detail::throw_error(errc::invalid_argument,
                                "counter: bounds.upper must not be greater than counter::highest");
        if (value < bounds.lower || value > bounds.upper)
            detail::throw_error(errc::invalid_argument,
                                "counter: value must be in [bounds.lower, bounds.upper]");
        return value;
    }

    template <class Token>
    auto wait_for(detail::counter_goal::goal_kind kind, std::int64_t n, Token&& token)
    {
        return detail::start_wait(request<detail::counter_goal>{this, {kind, n}},
                                  std::forward<Token>(token));
    }
};

/// The counter for any thread and any executor.
using counter = basic_counter<>;

namespace local {

/// The counter for one strand: it needs no atomic operations and no internal lock.
using counter = basic_counter<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
