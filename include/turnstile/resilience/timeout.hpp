// SPDX-License-Identifier: BSL-1.0
// A limit on the time of any operation: as a token, as a function, and as a stage.
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

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A completion token with a time limit, for any initiating function, of Turnstile, of Asio
/// or your own: `co_await socket.async_read_some(buffer, timeout_after(2s, use_awaitable))`.
///
/// The operation is started as ever. When time is up before it has completed, it is cancelled,
/// and completes when it is over: with `errc::timed_out` instead of the `operation_aborted`
/// this has led to. Everything else passes through unchanged.
///
/// Completes when: the operation has completed; one that ignores cancellation is waited for,
/// however long it takes. Exactly once.
/// Signature: the operation's; it must start with an `error_code` or an `exception_ptr`.
/// Errors: `errc::timed_out`, if the time limit cancelled it; `operation_aborted`, if the
/// caller did so before; and the operation's own. What the initiation throws is delivered.
/// If the operation has succeeded (or failed) by the time it would be cancelled, or in spite
/// of that, then this is the result.
/// Duration: from the start of the operation. If it is zero or negative the operation is
/// started, and cancelled at once. One that is too long to count never ends.
/// Executor: the handler's, by default the operation's; its intermediate steps run there in a
/// strand, so that no other is needed on a context with several threads. If neither has one, it
/// is the `system_executor`: then the handler is called on a thread of the system's, wherever
/// the operation completes. Bind one to it instead.
/// Cancellation: what the caller asks for is passed on, with its type; from any thread.
/// Cancel safety: that of the operation; ours have taken nothing when they time out.
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

/// The same with a point in time, of any clock. One in the past cancels at once, and one that is
/// too late for the clock to count never comes.
template <clock_policy Clock, class Duration, class Token = asio::use_awaitable_t<>>
auto timeout_at(std::chrono::time_point<Clock, Duration> when, Token&& token = Token())
{
    return detail::timeout_token<detail::time_at<Clock>, std::decay_t<Token>>{
        {detail::ceil_to_clock(when)}, std::forward<Token>(token)};
}

/// Runs an operation with a time limit: like `timeout_after`, for operations of either kind.
/// Signature: `operation_signature_t<Op>`. A coroutine runs on the handler's executor, and
/// must be given another way (see below) if the handler has none.
template <clock_policy Clock = default_clock, class Rep, class Period, operation Op,
          operation_token_for<Op> Token = asio::use_awaitable_t<>>
auto async_with_timeout(std::chrono::duration<Rep, Period> duration, Op&& op,
                        Token&& token = Token())
{
    return detail::with_timeout(detail::no_executor(),
                                detail::time_after<Clock>{saturating_nanoseconds(duration)},
                                nullptr, std::forward<Op>(op), token);
}

/// The same, for handlers that have no executor of their own: this is what they get.
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

/// A time limit as an object: a stage of a pipeline, and it counts.
///
/// Listeners: of every call that times out, as `timeout_event`.
/// Destruction: what is under way goes on, and listeners are told nothing more. Thread safety: any
/// thread may call anything.
template <class Executor = asio::any_io_executor, clock_policy Clock = default_clock>
class basic_timeout : public detail::supervising_object<Executor, detail::timeout_state> {
    using base = detail::supervising_object<Executor, detail::timeout_state>;

public:
    using typename base::executor_type;
    using clock_type = Clock;

    /// What has happened so far.
    struct statistics {
        std::uint64_t calls;     ///< Operations started.
        std::uint64_t timed_out; ///< Those that ended with `errc::timed_out`.
    };

    template <class Other>
    struct rebind_executor {
        using other = basic_timeout<Other, Clock>;
    };

    /// Operations may take `limit`. The executor is for handlers that have none.
    template <class Rep, class Period>
    basic_timeout(const std::type_identity_t<Executor>& executor,
                  std::chrono::duration<Rep, Period> limit)
        : base(executor, saturating_nanoseconds(limit))
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context, class Rep, class Period>
    basic_timeout(Context& context, std::chrono::duration<Rep, Period> limit)
        : basic_timeout(context.get_executor(), limit)
    {
    }

    /// How long an operation may take.
    nanoseconds limit() const noexcept { return this->state()->limit; }

    /// Runs an operation within the limit; see `async_with_timeout`.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Token&& token = Token())
    {
        return detail::with_timeout(this->get_executor(), detail::time_after<Clock>{limit()},
                                    this->state(), std::forward<Op>(op), token);
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// What it has done so far. Thread safe.
    statistics stats() const noexcept
    {
        const detail::timeout_state& state = *this->state();
        return {state.read(state.calls), state.read(state.timed_out)};
    }
};

/// The usual timeout: any executor, the steady clock.
using timeout = basic_timeout<>;

} // namespace turnstile::inline v0_1
