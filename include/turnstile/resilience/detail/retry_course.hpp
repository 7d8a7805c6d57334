// SPDX-License-Identifier: BSL-1.0
//
// The course of one call of basic_retry: which time limit an attempt has, and whether another
// attempt follows, after which delay. It has no I/O. retry_supervisor runs the attempts of a call
// in general, and retry_in_coroutine() those of a coroutine inside the coroutine of the caller.
//
// Invariant: a token that was withdrawn from the budget for an attempt that does not take place is
// returned by take_back().
#pragma once

#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/resilience/detail/retry_rules.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>
#include <turnstile/resilience/retry_machine.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

template <class Options, class Clock, class Signature>
class retry_course {
    using traits = result_traits<Signature>;

public:
    retry_course(std::shared_ptr<const Options> options, std::uint64_t seed,
                 std::shared_ptr<retry_state> state)
        : options_(std::move(options)), state_(std::move(state)),
          machine_(common_options(*options_), now_on<Clock>(), seed)
    {
    }

    void begin() noexcept { retry_state::count(state_->calls); }

    // An attempt begins. Returns its time limit, which may be nanoseconds::max().
    named_limit<Clock> begin_attempt() noexcept
    {
        retry_state::count(state_->attempts);
        const retry_options& options = common_options(*options_);
        const nanoseconds limit = machine_.limit(now_on<Clock>());
        return {{limit},
                limit == options.attempt_timeout
                    ? timeout_name{"retry: attempt_timeout", options.attempt_timeout}
                    : timeout_name{"retry: total_timeout", options.total_timeout}};
    }

    // The number of the current attempt.
    std::uint32_t attempt() const noexcept { return machine_.attempt(); }

    // The attempt has ended. Returns the delay before the next one, or nothing if this result is
    // the result of the call.
    std::optional<nanoseconds> end_attempt(const typename traits::tuple& result, bool is_cancelled)
    {
        const failure reason = traits::failure_of(result);
        if (is_cancelled || reason.is_cancelled()) {
            retry_state::count(reason ? state_->cancelled : state_->succeeded);
            return std::nullopt;
        }
        const retry_advice advice = advise(*options_, reason, result);
        if (!advice.retryable && !reason) {
            retry_state::count(state_->succeeded);
            return std::nullopt;
        }
        const std::uint32_t failed = machine_.attempt();
        const auto decision = machine_.failed(now_on<Clock>(), advice.retryable, advice.delay);
        if (decision.stop != retry_stop_reason::none) {
            state_->stop(decision.stop);
            return std::nullopt;
        }
        try {
            const retry_event event{failed, decision.delay, reason};
            if (const auto& on_retry = common_options(*options_).on_retry)
                on_retry(event);
            state_->tell(event);
        } catch (...) {
            take_back();
            throw;
        }
        return decision.delay;
    }

    // The attempt after the delay does not take place.
    void take_back() noexcept { machine_.take_back(); }
    // The caller has cancelled the call during the delay.
    void count_cancellation() noexcept { retry_state::count(state_->cancelled); }
    // An exception is the result of the call: one of the options' functions threw it, or there is
    // no memory for the delay.
    void count_exception() noexcept { retry_state::count(state_->by_exception); }

private:
    std::shared_ptr<const Options> options_;
    std::shared_ptr<retry_state> state_;
    retry_machine machine_;
};

} // namespace turnstile::inline v0_1::detail
