// SPDX-License-Identifier: BSL-1.0
// A time limit for any operation: as a completion token, as a function, and as an object.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>
#include <turnstile/resilience/detail/timeout_token.hpp>
#include <turnstile/resilience/timeout_event.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Returns a completion token with a time limit, for any initiating function of Turnstile, of Asio
/// or of another library: `co_await socket.async_read_some(buffer, timeout_after(2s, token))`.
///
/// When the time is up, the operation is cancelled. If it then completes with `operation_aborted`,
/// that is replaced by `errc::timed_out`; every other result passes through unchanged.
///
/// @param duration Counted from the start of the operation. With zero or less the operation is
/// started, and cancelled at once. A duration too long for the clock never ends.
/// @par Completes when
/// the operation completes, exactly once. An operation that ignores cancellation is awaited.
/// @par Completion signature
/// The operation's. It must start with an `error_code` or an `exception_ptr`.
/// @par Errors
/// `errc::timed_out` if the time limit cancelled the operation; `operation_aborted` if the caller
/// cancelled it before; the operation's own. An exception that the initiation throws is delivered.
/// @par Executor
/// The handler's associated executor, by default the operation's. Intermediate steps run there in a
/// strand, so the caller needs none on a context with several threads. If neither has an executor,
/// the `system_executor` is used, and the handler runs on a thread of the system context.
/// @par Per-operation cancellation
/// Passed on with its type. It may be emitted from any thread.
/// @par Cancel safety
/// The operation's. An operation of Turnstile that times out has consumed nothing.
template <clock_policy Clock = default_clock, class Rep, class Period,
          class Token = asio::use_awaitable_t<>>
auto timeout_after(std::chrono::duration<Rep, Period> duration, Token&& token = Token())
{
    return detail::timeout_token<detail::time_after<Clock>, std::decay_t<Token>>{
        {saturating_nanoseconds(duration)}, std::forward<Token>(token)};
}
template <detail::number_without_unit T, class Token = asio::use_awaitable_t<>>
auto timeout_after(T, Token&& token = Token())
{
    static_assert(detail::is_never<T>,
                  "timeout_after takes a duration with a unit: timeout_after(1s, token).");
    return std::decay_t<Token>(std::forward<Token>(token));
}

/// Equivalent to `timeout_after`, with a point in time of any clock. A point in the past cancels
/// the operation at once.
template <clock_policy Clock, class Duration, class Token = asio::use_awaitable_t<>>
auto timeout_at(std::chrono::time_point<Clock, Duration> when, Token&& token = Token())
{
    return detail::timeout_token<detail::time_at<Clock>, std::decay_t<Token>>{
        {detail::ceil_to_clock(when)}, std::forward<Token>(token)};
}

/// Runs an operation with a time limit; see `timeout_after`. The operation may be a coroutine,
/// which runs on the handler's associated executor. If the handler has none, pass an executor.
///
/// @par Completion signature
/// `operation_signature_t<Op>`
template <clock_policy Clock = default_clock, class Rep, class Period, operation Op,
          operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_with_timeout(std::chrono::duration<Rep, Period> duration, Op&& op,
                        Token&& token = Token())
{
    return detail::with_timeout(detail::no_executor(),
                                detail::time_after<Clock>{saturating_nanoseconds(duration)},
                                nullptr, std::forward<Op>(op), token);
}

/// Equivalent to `async_with_timeout` without an executor, for handlers without an associated
/// executor.
template <clock_policy Clock = default_clock, class Executor, class Rep, class Period, operation Op,
          operation_token_for<Op> Token = detail::call_token_t<Executor>>
auto async_with_timeout(const Executor& executor, std::chrono::duration<Rep, Period> duration,
                        Op&& op, Token&& token = Token())
{
    return detail::with_timeout(executor,
                                detail::time_after<Clock>{saturating_nanoseconds(duration)},
                                nullptr, std::forward<Op>(op), token);
}
template <class Rep, class Period, class Op, class... Rest>
    requires detail::mistaken_operation<Op, Rest...>
auto async_with_timeout(std::chrono::duration<Rep, Period>, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <class Executor, class Rep, class Period, class Op, class... Rest>
    requires detail::mistaken_operation<Op, Rest...>
auto async_with_timeout(const Executor&, std::chrono::duration<Rep, Period>, Op&&, Rest&&...)
{
    return detail::explain_operation<Op>();
}
template <detail::number_without_unit T, class... Rest>
auto async_with_timeout(T, Rest&&...)
{
    static_assert(detail::is_never<T>, "async_with_timeout takes a duration with a unit: "
                                       "async_with_timeout(1s, operation, token).");
    return detail::mistaken_call();
}
template <class Executor, detail::number_without_unit T, class... Rest>
auto async_with_timeout(const Executor&, T, Rest&&...)
{
    static_assert(detail::is_never<T>, "async_with_timeout takes a duration with a unit: "
                                       "async_with_timeout(executor, 1s, operation, token).");
    return detail::mistaken_call();
}

/// A time limit as an object, with statistics and listeners; a stage of a pipeline.
///
/// Listeners receive each call that times out as a `timeout_event`.
///
/// @par Thread safety
/// Any thread may call any function.
/// @par Destruction
/// Outstanding calls continue. No listener is called afterwards.
template <class Executor = asio::any_io_executor, clock_policy Clock = default_clock>
class basic_timeout : public detail::supervising_object<Executor, detail::timeout_state> {
    using base = detail::supervising_object<Executor, detail::timeout_state>;

public:
    using typename base::executor_type;
    /// The clock that measures the limit.
    using clock_type = Clock;

    /// The same type of timeout for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_timeout<Other, Clock>;
    };

    /// A limit for all calls. The executor is used for handlers without an associated executor.
    template <class Rep, class Period>
    basic_timeout(const std::type_identity_t<Executor>& executor,
                  std::chrono::duration<Rep, Period> limit)
        : base(executor, saturating_nanoseconds(limit))
    {
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context, class Rep, class Period>
    basic_timeout(Context& context, std::chrono::duration<Rep, Period> limit)
        : basic_timeout(context.get_executor(), limit)
    {
    }

    /// The limit given at construction.
    nanoseconds limit() const noexcept { return this->state()->limit; }

    /// Runs an operation with the limit; see `async_with_timeout`.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        return detail::with_timeout(this->get_executor(), detail::time_after<Clock>{limit()},
                                    this->state(), std::forward<Op>(op), token);
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The figures of the timeout at this time.
    [[nodiscard]] timeout_stats stats() const noexcept
    {
        const detail::timeout_state& state = *this->state();
        return {state.read(state.calls), state.read(state.timed_out)};
    }
};

/// A timeout for any executor, with the steady clock.
using timeout = basic_timeout<>;

} // namespace turnstile::inline v0_1
