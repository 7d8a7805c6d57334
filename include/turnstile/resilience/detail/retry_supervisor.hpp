// SPDX-License-Identifier: BSL-1.0
//
// The supervisor of one call of basic_retry: it starts a copy of the operation for each attempt,
// lets the course of the call decide when the attempt completes (retry_course.hpp), and waits for
// the delay between two attempts. At most one attempt is outstanding, and either an attempt or the
// timer of a delay is.
#pragma once

#include <turnstile/detail/call/numbered_operation.hpp>
#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/resilience/detail/retry_course.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Runs an operation until it succeeds, or the options allow no further attempt.
template <class Options, class Op, class Clock, class Signature, class Handler, class Executor>
class retry_supervisor final
    : public supervisor<retry_supervisor<Options, Op, Clock, Signature, Handler, Executor>,
                        Signature, Handler, Executor, Clock> {
    using base = supervisor<retry_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;
    using box_type = typename base::box_type;

public:
    retry_supervisor(Handler&& handler, const Executor& executor,
                     std::shared_ptr<const Options> options, Op&& op, std::uint64_t seed,
                     std::shared_ptr<retry_state> state)
        : base(std::move(handler), executor), original_(std::move(op)),
          course_(std::move(options), seed, std::move(state))
    {
    }

    void begin()
    {
        course_.begin();
        attempt();
    }

private:
    void attempt()
    {
        const named_limit<Clock> limit = course_.begin_attempt();
        this->start_operation(operation_, [&](auto handler) {
            if (limit.delay == nanoseconds::max())
                return initiate(numbered_copy(original_, course_.attempt()), this->strand(),
                                std::move(handler));
            run_with_timeout<Signature>(
                std::move(handler), this->strand(), limit, asio::cancellation_type::all,
                [&](const auto& strand, auto inner) {
                    initiate(numbered_copy(original_, course_.attempt()), strand, std::move(inner));
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
            course_.take_back();
            course_.count_cancellation();
            return this->finish_with(traits::from_error(asio::error::operation_aborted));
        }
        if (events.expired) {
            sleeping_ = false;
            attempt();
        }
    }

    // An exception of the options' functions is the result of the call.
    void completed(box_type&& result)
    {
        try {
            if (const auto delay = course_.end_attempt(*result, cancelled_))
                return sleep(*delay);
        } catch (...) {
            course_.count_exception();
            return this->finish_with(traits::from_failure(std::current_exception()));
        }
        this->finish(std::move(result));
    }

    // Uses the timer also for a delay of zero: other handlers and a cancellation run between two
    // attempts, even if the attempts complete without waiting.
    void sleep(nanoseconds delay)
    {
        sleeping_ = true;
        try {
            this->start_timer(deadline_after<Clock>(Clock::now(), delay));
        } catch (...) {
            course_.take_back();
            throw;
        }
    }

    Op original_;
    retry_course<Options, Clock, Signature> course_;
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
