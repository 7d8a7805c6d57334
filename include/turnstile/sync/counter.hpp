// SPDX-License-Identifier: BSL-1.0
// An awaitable counter: an integer that asynchronous code can wait for.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/counter_request.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// The bounds of a counter, both included. By default it cannot become negative, and goes as
/// high as it can.
struct counter_bounds {
    std::int64_t lower = 0;
    std::int64_t upper = detail::counter_state<thread_safe>::highest;
};

/// An integer between two bounds that goes up and down, and can be waited for: until it is
/// zero, at least or at most so much, or whatever a predicate says.
///
/// Who waits when a value is reached goes, even if it is left again at once. Waiting consumes
/// nothing. A change costs in proportion to the threshold waits it ends, and the logarithm of
/// those there are; and to all that wait with a predicate.
///
/// Fairness: of those that one change lets go, the ones with the nearest threshold are first,
/// among equals who came first; then those with a predicate, in the order they came.
/// Destruction: every waiter completes with `operation_aborted`.
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

    /// The furthest that bounds can go.
    static constexpr std::int64_t lowest = detail::counter_state<Threading>::lowest;
    static constexpr std::int64_t highest = detail::counter_state<Threading>::highest;

    /// A counter that starts at `value`.
    /// Throws `system_error` with `errc::invalid_argument` if the bounds are the wrong way
    /// round, beyond `lowest` and `highest`, or if the value is not between them.
    explicit basic_counter(const std::type_identity_t<Executor>& executor, std::int64_t value = 0,
                           counter_bounds bounds = {})
        : base(executor, checked(value, bounds), bounds.lower, bounds.upper)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_counter(Context& context, std::int64_t value = 0, counter_bounds bounds = {})
        : basic_counter(context.get_executor(), value, bounds)
    {
    }

    /// Adds n, which may be negative, and returns the value after that. No handler runs inside
    /// this call.
    /// Errors: `errc::over_count` or `errc::negative_count` if that would cross the upper or
    /// lower bound; the value, which is returned, is unchanged.
    /// Thread safety: as the policy says.
    std::int64_t add(std::int64_t n, error_code& ec) noexcept
    {
        std::int64_t value = 0;
        ec = this->state().add(n, value).error();
        return value;
    }

    /// The same, throwing `system_error`.
    std::int64_t add(std::int64_t n = 1)
    {
        error_code ec;
        const std::int64_t value = add(n, ec);
        detail::throw_if(ec, "counter::add");
        return value;
    }

    /// Subtracts n; in everything else as `add`.
    std::int64_t sub(std::int64_t n, error_code& ec) noexcept
    {
        std::int64_t value = 0;
        ec = this->state().sub(n, value).error();
        return value;
    }

    /// The same, throwing `system_error`.
    std::int64_t sub(std::int64_t n = 1)
    {
        error_code ec;
        const std::int64_t value = sub(n, ec);
        detail::throw_if(ec, "counter::sub");
        return value;
    }

    /// The value: a hint where others change it. Thread safety: as the policy says.
    [[nodiscard]] std::int64_t value() const noexcept { return this->state().value(); }

    /// The bounds it was made with.
    [[nodiscard]] counter_bounds bounds() const noexcept
    {
        return {this->state().lower(), this->state().upper()};
    }

    /// Waits until the value is at least n.
    ///
    /// Completes when: it is, or once it has been while this waited.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the counter was destroyed;
    /// `errc::over_count` if n is above the upper bound, so that it never could.
    /// Executor: the handler's associated executor, by default the counter's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: nearest threshold first, then FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_at_least(std::int64_t n, Token&& token = Token())
    {
        return wait_for(detail::count_goal::kind::at_least, n, std::forward<Token>(token));
    }

    /// Waits until the value is at most n; in everything else as `async_wait_at_least`, but
    /// that it is `errc::negative_count` if n is below the lower bound.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_at_most(std::int64_t n, Token&& token = Token())
    {
        return wait_for(detail::count_goal::kind::at_most, n, std::forward<Token>(token));
    }

    /// Waits until the value is zero, or less where that can be.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_zero(Token&& token = Token())
    {
        return async_wait_at_most(0, std::forward<Token>(token));
    }

    /// Waits until `predicate(value)` is true.
    ///
    /// The predicate is asked at once, and then at every change, so that it sees each value:
    /// on the thread that makes the change, inside the call, and under the internal lock. It
    /// must be short, not use the counter, and not throw. If it throws all the same, its wait
    /// ends with `errc::predicate_failed`, and nothing else happens. It is copied with the
    /// operation.
    ///
    /// Completes when: it is true, or once it has been while this waited.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the counter was destroyed;
    /// `errc::predicate_failed`.
    /// Executor: the handler's associated executor, by default the counter's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: FIFO among predicates. Thread safety: as the policy says.
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
                                "counter: bounds.lower must be lowest or more");
        if (bounds.upper > highest)
            detail::throw_error(errc::invalid_argument,
                                "counter: bounds.upper must be highest or less");
        if (value < bounds.lower || value > bounds.upper)
            detail::throw_error(errc::invalid_argument, "counter: value must be within its bounds");
        return value;
    }

    template <class Token>
    auto wait_for(detail::count_goal::kind what, std::int64_t n, Token&& token)
    {
        return detail::start_wait(request<detail::count_goal>{this, {what, n}},
                                  std::forward<Token>(token));
    }
};

/// The usual counter: any thread, any executor.
using counter = basic_counter<>;

namespace local {

/// A counter for one strand: no atomics, no locks.
using counter = basic_counter<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
