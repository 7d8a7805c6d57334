// SPDX-License-Identifier: BSL-1.0
//
// The supervisor of one call of basic_retry: it starts a copy of the operation for each attempt,
// evaluates the rules of the options when the attempt completes, and waits for the delay between
// two attempts. At most one attempt is outstanding, and either an attempt or the timer of a delay
// is. A token that was withdrawn from the budget for an attempt that does not take place is
// returned.
#pragma once

#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/resilience/detail/retry_rules.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>
#include <turnstile/resilience/retry_machine.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The state that all calls of one basic_retry share: counters and listeners.
struct retry_state : supervised_state<retry_event> {
    counter calls{0};
    counter attempts{0};
    counter succeeded{0};
    counter cancelled{0};
    counter by_exception{0};
    counter stopped[5]{}; // indexed by retry_stop_reason

    void stop(retry_stop_reason why) noexcept { count(stopped[static_cast<std::size_t>(why)]); }
    std::uint64_t stops(retry_stop_reason why) const noexcept
    {
        return read(stopped[static_cast<std::size_t>(why)]);
    }
};

// The time limit of an attempt: its own, or the rest of the total. `label` says which.
template <class Clock>
struct named_limit : time_after<Clock> {
    timeout_name label;
    timeout_name name() const noexcept { return label; }
};

// Runs an operation until it succeeds, or the options allow no further attempt.
template <class Options, class Op, class Clock, class Signature, class Handler, class Executor>
class retry_supervisor final
    : public supervisor<retry_supervisor<Options, Op, Clock, Signature, Handler, Executor>,
                        Signature, Handler, Executor, Clock> {
    using base = supervisor<retry_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;
    using result_type = typename base::result_type;
    using box_type = typename base::box_type;

public:
    retry_supervisor(Handler&& handler, const Executor& executor,
                     std::shared_ptr<const Options> options, Op&& op, std::uint64_t seed,
                     std::shared_ptr<retry_state> state)
        : base(std::move(handler), executor), options_(std::move(options)),
          original_(std::move(op)), state_(std::move(state)),
          machine_(common_options(*options_), now(), seed)
    {
    }

    void begin()
    {
        retry_state::count(state_->calls);
        attempt();
    }

private:
    static nanoseconds now() noexcept
    {
        return saturating_nanoseconds(Clock::now().time_since_epoch());
    }

    void attempt()
    {
        retry_state::count(state_->attempts);
        const nanoseconds limit = machine_.limit(now());
        const retry_options& options = common_options(*options_);
        const timeout_name name =
            limit == options.attempt_timeout
                ? timeout_name{"retry: attempt_timeout", options.attempt_timeout}
                : timeout_name{"retry: total_timeout", options.total_timeout};
        this->start_operation(operation_, [&](auto handler) {
            if (limit == nanoseconds::max())
                return initiate(Op(original_), this->strand(), std::move(handler));
            run_with_timeout<Signature>(
                std::move(handler), this->strand(), named_limit<Clock>{{limit}, name},
                asio::cancellation_type::all, [&](const auto& strand, auto inner) {
                    initiate(Op(original_), strand, std::move(inner));
                });
        });
    }

    void handle(supervised_events events) override
    {
        if (events.cancelled != asio::cancellation_type::none) {
            cancelled_ = true;
            operation_.cancel(events.cancelled);
        }
        if (auto result = operation_.take())
            return completed(std::move(result));
        if (!sleeping_ || this->is_finished())
            return;
        if (cancelled_) {
            machine_.take_back();
            retry_state::count(state_->cancelled);
            return this->finish_with(traits::from_error(asio::error::operation_aborted));
        }
        if (events.expired) {
            sleeping_ = false;
            attempt();
        }
    }

    // An exception is the result of the call: one of the options' functions threw it, or there is
    // no memory for the delay.
    void completed(box_type&& result)
    {
        try {
            if (goes_on(*result))
                return;
        } catch (...) {
            retry_state::count(state_->by_exception);
            return this->finish_with(traits::from_failure(std::current_exception()));
        }
        this->finish(std::move(result));
    }

    bool goes_on(const result_type& result)
    {
        const failure reason = traits::failure_of(result);
        if (cancelled_ || reason.is_cancelled()) {
            retry_state::count(reason ? state_->cancelled : state_->succeeded);
            return false;
        }
        const retry_advice advice = advise(*options_, reason, result);
        if (!advice.retryable && !reason) {
            retry_state::count(state_->succeeded);
            return false;
        }
        const std::uint32_t failed = machine_.attempt();
        const auto decision = machine_.failed(now(), advice.retryable, advice.delay);
        if (decision.stop != retry_stop_reason::none) {
            state_->stop(decision.stop);
            return false;
        }
        try {
            const retry_event event{failed, decision.delay, reason};
            if (const auto& on_retry = common_options(*options_).on_retry)
                on_retry(event);
            state_->tell(event);
            sleep(decision.delay);
        } catch (...) {
            machine_.take_back();
            throw;
        }
        return true;
    }

    // Uses the timer also for a delay of zero: other handlers and a cancellation run between two
    // attempts, even if the attempts complete without waiting.
    void sleep(nanoseconds delay)
    {
        sleeping_ = true;
        this->start_timer(deadline_after<Clock>(Clock::now(), delay));
    }

    std::shared_ptr<const Options> options_;
    Op original_;
    std::shared_ptr<retry_state> state_;
    retry_machine machine_;
    typename base::operation_type operation_;
    bool sleeping_ = false;
    bool cancelled_ = false;
};

template <class Clock, class Signature, class Handler, class Executor, class Options, class Op>
void run_with_retries(Handler&& handler, const Executor& executor,
                      std::shared_ptr<const Options> options, Op&& op, std::uint64_t seed,
                      std::shared_ptr<retry_state> state)
{
    constexpr bool can_report = result_traits<Signature>::can_make_failure;
    static_assert(can_report,
                  "A retry must distinguish failure from success, and report it: the operation's "
                  "signature must start with an error_code or an exception_ptr, and its other "
                  "arguments must be default constructible.");
    // Without this condition the supervisor would add errors that do not explain the mistake.
    if constexpr (can_report) {
        using runner = retry_supervisor<Options, Op, Clock, Signature, Handler, Executor>;
        runner::run(
            std::forward<Handler>(handler), executor, [](runner& self) { self.begin(); },
            std::move(options), std::forward<Op>(op), seed, std::move(state));
    }
}

} // namespace turnstile::inline v0_1::detail
