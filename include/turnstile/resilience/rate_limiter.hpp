// SPDX-License-Identifier: BSL-1.0
// A rate limiter: a limited number of permits in each period, for operations that wait and for
// requests that must not wait.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/bandwidth.hpp>
#include <turnstile/resilience/detail/coroutine_call.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>
#include <turnstile/resilience/detail/rate_limiter_state.hpp>
#include <turnstile/resilience/rate_limiter_options.hpp>
#include <turnstile/resilience/rate_limiter_reservation.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// A token bucket for each of one or several bandwidths. A permit must be available in all buckets.
///
/// A bucket starts full. Exactly `burst` permits are granted at once, and further permits at the
/// rate, not a nanosecond earlier. A clock that goes back creates no permits. Permits are used up;
/// only a cancellation gives them back. A waiter with others behind it is charged for the time at
/// which it was due, even if the timer is late, so lateness does not add up, and no accepted waiter
/// misses its deadline because of it.
///
/// Listeners receive every `rate_limiter_event`, rejections included.
///
/// @par Complexity
/// Every function takes constant time, regardless of the number of waiters, except `set_limits`.
/// With several bandwidths or outstanding reservations this is amortized; the first request after
/// the end of a reservation then examines all outstanding ones.
///
/// @par Fairness
/// Strict FIFO. A small request never overtakes an earlier large one, and `try_acquire` fails while
/// operations wait. A reservation is placed behind all waiters.
///
/// @par Thread safety
/// With `thread_safe`, any thread may call any function at any time. With `strand_confined`, all
/// calls come from one strand.
///
/// @par Destruction
/// Every waiter completes with `operation_aborted`. No listener is called afterwards. Reservations
/// may outlive the limiter.
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
    friend rate_limiter_reservation<basic_rate_limiter>;

public:
    using typename base::executor_type;
    using clock_type = Clock;
    /// The result of `reserve`.
    using reservation_type = rate_limiter_reservation<basic_rate_limiter>;

    template <class Other>
    struct rebind_executor {
        using other = basic_rate_limiter<Other, Threading, Clock>;
    };

    /// Constructs a limiter with one bandwidth, as in `rate_limiter(io, per_second(5, 10))`, or
    /// with several.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if there is no bandwidth, or if one
    /// breaks a rule of `bandwidth`. The text names the member, as in "rate_limiter: burst must be
    /// at least 1".
    explicit basic_rate_limiter(const std::type_identity_t<Executor>& executor,
                                std::vector<bandwidth> limits,
                                const rate_limiter_options& options = {})
        : base(executor, std::move(limits), options)
    {
    }
    explicit basic_rate_limiter(const std::type_identity_t<Executor>& executor,
                                const bandwidth& limit, const rate_limiter_options& options = {})
        : basic_rate_limiter(executor, std::vector{limit}, options)
    {
    }

    /// Constructs a limiter with the executor of an execution context.
    template <detail::execution_context Context, class Limits>
    explicit basic_rate_limiter(Context& context, const Limits& limits,
                                const rate_limiter_options& options = {})
        : basic_rate_limiter(context.get_executor(), limits, options)
    {
    }
    template <detail::execution_context Context>
    explicit basic_rate_limiter(Context& context, std::initializer_list<bandwidth> limits,
                                const rate_limiter_options& options = {})
        : basic_rate_limiter(context.get_executor(), std::vector(limits), options)
    {
    }

    /// Takes n permits if they are available and no operation waits. Never waits. With one
    /// bandwidth and no waiters this is a single compare-and-swap.
    [[nodiscard]] bool try_acquire(std::uint64_t n = 1) noexcept
    {
        return this->state().try_acquire(n, nullptr).is_granted();
    }

    /// Equivalent to `try_acquire(n)`, and reports when to try again.
    ///
    /// @param retry_after Zero on success; the maximum if n permits can never be granted (n is 0 or
    /// larger than the burst).
    [[nodiscard]] bool try_acquire(std::uint64_t n, nanoseconds& retry_after) noexcept
    {
        return this->state().try_acquire(n, &retry_after).is_granted();
    }

    /// Equivalent to `try_acquire(n)`, and reports the reason of a failure.
    ///
    /// @par Errors
    /// `errc::rate_limited` if too few permits are available or operations wait;
    /// `errc::too_large` if n is larger than the burst; `errc::invalid_argument` if n is 0.
    [[nodiscard]] bool try_acquire(std::uint64_t n, error_code& ec) noexcept
    {
        const detail::wait_decision decision = this->state().try_acquire(n, nullptr);
        ec = decision.error();
        return decision.is_granted();
    }

    /// Waits for n permits, all at once.
    ///
    /// @par Completes when
    /// n permits are available and all earlier requests have been served.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// - `operation_aborted` if the operation is cancelled or the limiter is destroyed
    /// - `errc::too_large` if n is larger than the burst, at once or after `set_limits`
    /// - `errc::rejected` if `max_waiters` operations wait, if the sum of all waiting requests is
    ///   too large to be counted, or if there is no memory for a timer
    /// - `errc::invalid_argument` if n is 0
    ///
    /// A coroutine is thrown all but the first as a `rejection`, which says when to try again.
    /// @par Executor
    /// The handler's associated executor, by default that of the limiter.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs has used no permits, and the waiters
    /// behind it move up. A coroutine whose cancellation slot is connected always suspends.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request(*this, n, nanoseconds::max()),
                                  std::forward<Token>(token));
    }

    /// Waits for n permits if that takes no longer than `within`; otherwise completes at once with
    /// `errc::rate_limited`. Apart from that, equivalent to `async_acquire(n, token)`.
    ///
    /// An operation that waits fails with `errc::rate_limited` only after a change of the limits.
    /// `time_until` says when to try again.
    ///
    /// @param within A negative duration counts as zero.
    template <class Rep, class Period, token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, std::chrono::duration<Rep, Period> within,
                       Token&& token = Token())
    {
        return detail::start_wait(request(*this, n, detail::at_least_zero(within)),
                                  std::forward<Token>(token));
    }

    /// Equivalent to `async_acquire(1, token)`.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return async_acquire(1, std::forward<Token>(token));
    }

    /// Waits for one permit, then runs an operation: a stage of a pipeline.
    ///
    /// @par Completes when
    /// The operation completes, with its result. If `async_acquire` fails, the call completes with
    /// that error, and the operation is not started. Where failures are exceptions, the error is
    /// thrown as a `rejection`, which says when to try again.
    /// @par Completion signature
    /// That of the operation, which must be able to report an error.
    /// @par Executor
    /// The handler's associated executor, allocator and cancellation slot serve the wait and the
    /// operation.
    /// @par Per-operation cancellation
    /// That of `async_acquire` during the wait, that of the operation afterwards.
    /// @par Fairness
    /// FIFO.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        return detail::limited_call(request(*this, 1, nanoseconds::max()), std::forward<Op>(op),
                                    std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The limiter with a weight, as a stage of a pipeline. Must not outlive the limiter.
    class stage_type {
    public:
        using executor_type = Executor;

        executor_type get_executor() const noexcept { return limiter_->get_executor(); }

        /// Equivalent to `async_call` of the limiter, with the permits and the longest wait of the
        /// stage.
        template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        auto async_call(Op&& op, Token&& token = Token()) const
        {
            return detail::limited_call(request(*limiter_, permits_, within_), std::forward<Op>(op),
                                        std::forward<Token>(token));
        }
        template <class Op, class... Rest>
            requires detail::mistaken_operation<Op, Rest...>
        auto async_call(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

    private:
        friend basic_rate_limiter;
        stage_type(basic_rate_limiter& limiter, std::uint64_t n, nanoseconds within) noexcept
            : limiter_(&limiter), permits_(n), within_(within)
        {
        }

        basic_rate_limiter* limiter_;
        std::uint64_t permits_;
        nanoseconds within_;
    };
    /// A stage of a pipeline whose calls take n permits each.
    [[nodiscard]] stage_type stage_for(std::uint64_t n) noexcept
    {
        return stage_type(*this, n, nanoseconds::max());
    }
    /// Equivalent to `stage_for(n)`, but a call that would wait longer than `within` for its
    /// permits fails at once with `errc::rate_limited`. A negative duration counts as zero.
    template <class Rep, class Period>
    [[nodiscard]] stage_type stage_for(std::uint64_t n,
                                       std::chrono::duration<Rep, Period> within) noexcept
    {
        return stage_type(*this, n, detail::at_least_zero(within));
    }

    /// Reserves n permits behind all waiters. The reservation says when they may be used; no other
    /// request gets them. `release()` gives them back; destroying the reservation does not.
    ///
    /// @param within The longest acceptable time until then. A negative duration counts as zero.
    ///
    /// @par Errors
    /// - `errc::rate_limited` if it would take longer than `within`
    /// - `errc::too_large` if n is larger than the burst
    /// - `errc::invalid_argument` if n is 0
    /// - `errc::rejected` if the sum of all waiting requests is too large to be counted
    ///
    /// The returned reservation is then empty, and its `delay()` is the time that it would have
    /// taken. The overloads without `ec` throw `system_error`.
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

    /// The time that a request for n permits would wait: zero if it need not wait, the maximum if
    /// it can never be granted.
    [[nodiscard]] nanoseconds time_until(std::uint64_t n = 1) const noexcept
    {
        return this->state().time_until(n);
    }

    /// The number of permits that `try_acquire` could take: a hint, outdated as soon as it is
    /// returned.
    [[nodiscard]] std::uint64_t available() const noexcept { return this->state().available(); }

    /// Changes the limits. The number of permits missing from each bucket stays the same.
    ///
    /// The expected times of the waiters change; a waiter that then cannot be granted, or not
    /// before its deadline, completes with `errc::too_large` or `errc::rate_limited`. Reservations
    /// keep their times and are not charged again.
    ///
    /// @par Errors
    /// `errc::invalid_argument`, as in the constructor; nothing is changed. The overloads without
    /// `ec` throw `system_error`.
    void set_limits(std::vector<bandwidth> limits, error_code& ec)
    {
        const bool valid = !detail::rate_limiter_schedule<Threading>::problem(limits);
        ec = valid ? error_code() : make_error_code(errc::invalid_argument);
        if (valid)
            this->state().set_limits(std::move(limits));
    }
    void set_limits(const bandwidth& limit, error_code& ec) { set_limits(std::vector{limit}, ec); }

    void set_limits(std::vector<bandwidth> limits) { this->state().set_limits(std::move(limits)); }
    void set_limits(const bandwidth& limit) { set_limits(std::vector{limit}); }

    /// The current limits.
    [[nodiscard]] std::vector<bandwidth> limits() const { return this->state().limits(); }
    /// The counters since the construction.
    [[nodiscard]] rate_limiter_stats stats() const noexcept { return this->state().stats(); }
};

/// A rate limiter for any thread and any executor, with the steady clock.
using rate_limiter = basic_rate_limiter<>;

namespace local {

/// A rate limiter that is confined to one strand: no atomics, no locks.
using rate_limiter = basic_rate_limiter<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
