// SPDX-License-Identifier: BSL-1.0
// A rate limiter: so many permits in each period, with a burst, for those who can wait and
// those who cannot.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>
#include <turnstile/resilience/detail/rate_limiter_state.hpp>
#include <turnstile/resilience/gcra.hpp>
#include <turnstile/resilience/rate_options.hpp>
#include <turnstile/resilience/rate_reservation.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// A token bucket, or several of which every permit must be in all.
///
/// A bucket starts full. Exactly `burst` permits can be had at once, and the next ones at the
/// rate, not a nanosecond earlier; a clock that goes back mints nothing. Permits are used up:
/// only cancelling gives them back. A waiter with others behind it is charged for the time at
/// which it was due, also if the timer is late, so lateness does not add up, and no accepted
/// waiter misses its deadline because of it.
///
/// Fairness: strict FIFO. A small request never overtakes a large one that came before, and
/// `try_acquire` fails while others wait. A reservation is made behind all waiters.
/// Complexity: each function takes constant time, however many wait, except `set_limits`. With
/// several bandwidths or outstanding reservations, amortized; then the first request after the end
/// of a reservation looks at all outstanding ones.
/// Listeners: of every `rate_event`, the rejections included.
/// Destruction: every waiter completes with `operation_aborted`; listeners are told nothing
/// more. Reservations may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_rate_limiter
    : public detail::listening_object<Executor, Threading,
                                      detail::rate_limiter_state<Threading, Clock>> {
    using base =
        detail::listening_object<Executor, Threading, detail::rate_limiter_state<Threading, Clock>>;
    using request = detail::rate_limiter_request<basic_rate_limiter>;
    using state_type = detail::rate_limiter_state<Threading, Clock>;
    friend request;
    friend rate_reservation<basic_rate_limiter>;

public:
    using typename base::executor_type;
    using clock_type = Clock;
    /// What `reserve` gives.
    using reservation_type = rate_reservation<basic_rate_limiter>;

    template <class Other>
    struct rebind_executor {
        using other = basic_rate_limiter<Other, Threading, Clock>;
    };

    /// A limiter with one bandwidth, as in `rate_limiter(io, per_second(5, 10))`, or with
    /// several. Throws `system_error` with `errc::invalid_argument` if there is none, or one
    /// that `gcra::valid` does not accept; its text says why, as in "rate_limiter: burst must be
    /// at least 1".
    explicit basic_rate_limiter(const std::type_identity_t<Executor>& executor,
                                std::vector<bandwidth> limits, const rate_options& options = {})
        : base(executor, std::move(limits), options)
    {
    }
    explicit basic_rate_limiter(const std::type_identity_t<Executor>& executor,
                                const bandwidth& limit, const rate_options& options = {})
        : basic_rate_limiter(executor, std::vector{limit}, options)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context, class Limits>
    explicit basic_rate_limiter(Context& context, const Limits& limits,
                                const rate_options& options = {})
        : basic_rate_limiter(context.get_executor(), limits, options)
    {
    }
    template <detail::execution_context Context>
    explicit basic_rate_limiter(Context& context, std::initializer_list<bandwidth> limits,
                                const rate_options& options = {})
        : basic_rate_limiter(context.get_executor(), std::vector(limits), options)
    {
    }

    /// Takes n permits if they are there and nobody waits; never waits. With one bandwidth and
    /// nobody waiting this is a single compare-and-swap. Thread safety: as the policy says.
    [[nodiscard]] bool try_acquire(std::uint64_t n = 1) noexcept
    {
        return this->state().try_acquire(n, nullptr);
    }

    /// The same, and says when to try again: zero if it succeeded, the maximum if n can never
    /// be had (more than the burst, or 0).
    [[nodiscard]] bool try_acquire(std::uint64_t n, nanoseconds& retry_after) noexcept
    {
        return this->state().try_acquire(n, &retry_after);
    }

    /// Waits for `n` permits, all at once.
    ///
    /// Completes when: n permits are there and everyone who asked before has been served.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the limiter was destroyed;
    /// `errc::too_large` if n is, or by `set_limits` becomes, more than the burst;
    /// `errc::rejected` if `max_waiters` wait already, or for more permits than can be counted,
    /// or there is no memory for a timer;
    /// `errc::invalid_argument` if n is 0. To a coroutine all but the first are thrown as a
    /// `rejection`, which says when to try again.
    /// Executor: the handler's associated executor, by default the limiter's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it has used nothing, and those behind
    /// it move up. A coroutine that somebody can cancel takes no short cut.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request(*this, n, nanoseconds::max()),
                                  std::forward<Token>(token));
    }

    /// The same, if that takes no longer than `within`; if it would, completes at once with
    /// `errc::rate_limited`. A negative duration is zero. `time_until` says when to try again.
    /// Once it waits, only a change of the limits can make it fail so.
    template <class Rep, class Period, token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, std::chrono::duration<Rep, Period> within,
                       Token&& token = Token())
    {
        return detail::start_wait(request(*this, n, detail::at_least_zero(within)),
                                  std::forward<Token>(token));
    }

    /// Waits for one permit.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return async_acquire(1, std::forward<Token>(token));
    }

    /// Waits for one permit, then runs the operation: a stage of a pipeline.
    ///
    /// Completes when: the operation does, with its result; or with an error of
    /// `async_acquire`, and then it was never started. Where failures are exceptions, such an
    /// error is a `rejection`, which says when to try again.
    /// Signature: that of the operation, which must be able to report an error.
    /// Executor, allocator, cancellation: the handler's, for the wait and for the operation.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        return detail::call_when_permitted(request(*this, 1, nanoseconds::max()),
                                           std::forward<Op>(op), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// Takes n permits that will be there later, behind all waiters, and says when that is; the
    /// caller must not use them before. No later request gets them. Cancelling the reservation
    /// gives them back; destroying it does not.
    /// Errors: `errc::too_large`, `errc::invalid_argument` as above; `errc::rejected` if more
    /// permits are waited for than can be counted; and `errc::rate_limited` if it would take
    /// longer than `within`, of which a negative one is zero. Then the reservation is empty, and
    /// its delay the time after which it would have been there. Thread safety: as the policy says.
    template <class Rep, class Period>
    [[nodiscard]] reservation_type
    reserve(std::uint64_t n, std::chrono::duration<Rep, Period> within, error_code& ec)
    {
        return reservation_type(this->state(), n, detail::at_least_zero(within), ec);
    }
    [[nodiscard]] reservation_type reserve(std::uint64_t n, error_code& ec)
    {
        return reserve(n, nanoseconds::max(), ec);
    }

    /// The same, throwing `system_error`.
    template <class Rep, class Period>
    [[nodiscard]] reservation_type reserve(std::uint64_t n,
                                           std::chrono::duration<Rep, Period> within)
    {
        error_code ec;
        reservation_type result = reserve(n, within, ec);
        detail::throw_if(ec, "rate_limiter::reserve");
        return result;
    }
    [[nodiscard]] reservation_type reserve(std::uint64_t n = 1)
    {
        return reserve(n, nanoseconds::max());
    }

    /// How long a request for n permits would wait if it were made now: zero if not at all, the
    /// maximum if for ever. Thread safety: as the policy says.
    [[nodiscard]] nanoseconds time_until(std::uint64_t n = 1) const noexcept
    {
        return this->state().time_until(n);
    }

    /// How many permits could be taken now: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t available() const noexcept { return this->state().available(); }

    /// Changes the limits. As many permits stay missing from each bucket as there are now;
    /// those who wait are timed anew, and complete with `errc::too_large` or
    /// `errc::rate_limited` if there is no hope for them any more. Reservations keep their time,
    /// and are not charged again.
    /// Errors: `errc::invalid_argument`, as in the constructor; the state is unchanged.
    /// Thread safety: as the policy says.
    void set_limits(std::vector<bandwidth> limits, error_code& ec)
    {
        const bool valid = !detail::rate_levels<Threading>::problem(limits);
        ec = valid ? error_code() : make_error_code(errc::invalid_argument);
        if (valid)
            this->state().change(std::move(limits));
    }
    void set_limits(const bandwidth& limit, error_code& ec) { set_limits(std::vector{limit}, ec); }

    /// The same, throwing `system_error`.
    void set_limits(std::vector<bandwidth> limits) { this->state().change(std::move(limits)); }
    void set_limits(const bandwidth& limit) { set_limits(std::vector{limit}); }

    /// The limits as they are now.
    [[nodiscard]] std::vector<bandwidth> limits() const { return this->state().limits(); }
    /// What it has done so far. Thread safety: as the policy says.
    [[nodiscard]] rate_stats stats() const noexcept { return this->state().stats(); }
};

/// The usual rate limiter: any thread, any executor, the steady clock.
using rate_limiter = basic_rate_limiter<>;

namespace local {

/// A rate limiter for one strand: no atomics, no locks.
using rate_limiter = basic_rate_limiter<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
