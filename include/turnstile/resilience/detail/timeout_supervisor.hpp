// SPDX-License-Identifier: BSL-1.0
//
// The supervisor of one operation with a time limit, used by timeout_after, async_with_timeout,
// basic_timeout, and by each attempt of a retry. It cancels the operation when its time is up, and
// completes when the operation completes. The first cause of cancellation, the time limit or the
// caller, determines whether a cancelled operation reports errc::timed_out or operation_aborted.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/timeout_event.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Identifies a time limit in the message of the exception.
struct timeout_name {
    const char* limit;
    nanoseconds duration; // nanoseconds::max() for a limit without a duration

    TURNSTILE_EXPORT std::exception_ptr exception() const noexcept;
};

// A time limit as a duration from the start of the operation. A deadline of time_point::min()
// expires at once.
template <class Clock>
struct time_after {
    using clock = Clock;
    nanoseconds delay;

    timeout_name name() const noexcept { return {"timeout", delay}; }

    typename Clock::time_point deadline() const noexcept
    {
        return delay <= nanoseconds::zero() ? Clock::time_point::min()
                                            : deadline_after<Clock>(Clock::now(), delay);
    }
};

// A time limit as a point in time.
template <class Clock>
struct time_at {
    using clock = Clock;
    typename Clock::time_point when;

    timeout_name name() const noexcept { return {"timeout_at", nanoseconds::max()}; }
    typename Clock::time_point deadline() const noexcept
    {
        return when <= Clock::now() ? Clock::time_point::min() : when;
    }
};

// The state that all calls of one basic_timeout share: the limit, counters and listeners.
struct timeout_state : supervised_state<timeout_event> {
    explicit timeout_state(nanoseconds l) noexcept : limit(l) {}

    const nanoseconds limit;
    counter calls{0};
    counter timed_out{0};
};

// Runs one operation, and cancels it at its deadline.
template <class Clock, class Signature, class Handler, class Executor>
class timeout_supervisor final
    : public supervisor<timeout_supervisor<Clock, Signature, Handler, Executor>, Signature, Handler,
                        Executor, Clock> {
    using base = supervisor<timeout_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;

public:
    timeout_supervisor(Handler&& handler, const Executor& executor, asio::cancellation_type_t type,
                       const timeout_name& name, std::shared_ptr<timeout_state> state)
        : base(std::move(handler), executor), type_(type), name_(name), state_(std::move(state))
    {
    }

    // initiate(strand, handler) starts the operation. The strand is the supervisor's.
    template <class Initiate>
    void begin(typename Clock::time_point deadline, Initiate&& initiate)
    {
        if (state_)
            state_->count(state_->calls);
        const bool at_once = deadline == Clock::time_point::min();
        if (!at_once)
            this->start_timer(deadline);
        this->start_operation(operation_, [&](auto handler) {
            std::forward<Initiate>(initiate)(this->strand(), std::move(handler));
        });
        if (at_once)
            this->expire_at_once();
    }

private:
    enum class cause { none, time, caller };

    void handle(supervised_events events) override
    {
        if (auto result = operation_.take()) {
            if (cause_ == cause::time && traits::failure_of(*result).is_cancelled()) {
                if constexpr (traits::reports_exception)
                    traits::replace_failure(*result, name_.exception());
                else
                    traits::replace_failure(*result, make_error_code(errc::timed_out));
                if (state_) {
                    state_->count(state_->timed_out);
                    state_->tell({state_->limit});
                }
            }
            return this->finish(std::move(result));
        }
        if (events.cancelled != asio::cancellation_type::none)
            cancel(cause::caller, events.cancelled);
        if (events.expired)
            cancel(cause::time, type_);
    }

    // The first cause of cancellation determines the reported error.
    void cancel(cause by, asio::cancellation_type_t type)
    {
        if (cause_ == cause::none)
            cause_ = by;
        operation_.cancel(type);
    }

    typename base::operation_type operation_;
    asio::cancellation_type_t type_;
    cause cause_ = cause::none;
    timeout_name name_;
    std::shared_ptr<timeout_state> state_;
};

// Starts the supervisor of an operation. `state`, if not null, counts the call.
template <class Signature, class When, class Handler, class Executor, class Initiate>
void run_with_timeout(Handler handler, const Executor& executor, const When& when,
                      asio::cancellation_type_t type, Initiate&& initiate,
                      std::shared_ptr<timeout_state> state = nullptr)
{
    constexpr bool can_report = result_traits<Signature>::reports_failure;
    static_assert(can_report, "A timeout must be reported: the operation's signature must start "
                              "with an error_code or an exception_ptr.");
    // Without this condition the supervisor would add errors that do not explain the mistake.
    if constexpr (can_report) {
        using runner = timeout_supervisor<typename When::clock, Signature, Handler, Executor>;
        runner::run(
            std::move(handler), executor,
            [&](runner& self) { self.begin(when.deadline(), std::forward<Initiate>(initiate)); },
            type, when.name(), std::move(state));
    }
}

} // namespace turnstile::inline v0_1::detail
