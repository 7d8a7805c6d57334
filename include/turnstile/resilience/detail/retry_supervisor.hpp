// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/resilience/detail/timeout_supervisor.hpp>
#include <turnstile/resilience/rejection.hpp>
#include <turnstile/resilience/retry_policy.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct retry_state : supervised_state<retry_event> {
    counter calls{0};
    counter attempts{0};
    counter succeeded{0};
    counter cancelled{0};
    counter by_exception{0};
    counter refused[5]{}; // by retry_refusal

    void refuse(retry_refusal why) noexcept { count(refused[static_cast<std::size_t>(why)]); }
    std::uint64_t refusals(retry_refusal why) const noexcept
    {
        return read(refused[static_cast<std::size_t>(why)]);
    }
};

// Calls a user's function with the failure, or with the whole result, as it likes.
template <class F, class Result>
decltype(auto) ask_about(const F& f, const failure& reason, const Result& result)
{
    if constexpr (std::is_invocable_v<const F&, const failure&>) {
        return f(reason);
    } else {
        const auto takes_result = [&](const auto&... values) -> decltype(auto) {
            static_assert(std::is_invocable_v<const F&, decltype(values)...>,
                          "A retry predicate or hint must be callable with a failure, or with "
                          "the results of the operation as const references.");
            return f(values...);
        };
        return std::apply(takes_result, result);
    }
}

// The time limit of an attempt, which may be that of the attempt or what is left of the total.
template <class Clock>
struct named_limit : time_after<Clock> {
    timeout_name label;
    timeout_name name() const noexcept { return label; }
};

// Runs an operation until it succeeds, or the policy says that it is enough.
template <class Policy, class Op, class Clock, class Signature, class Handler, class Executor>
class retry_supervisor final
    : public supervisor<retry_supervisor<Policy, Op, Clock, Signature, Handler, Executor>,
                        Signature, Handler, Executor, Clock> {
    using base = supervisor<retry_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;
    using result_type = typename base::result_type;
    using box_type = typename base::box_type;
    static_assert(traits::can_make_failure,
                  "Retry needs to tell failure from success, and to report it: the operation's "
                  "signature must start with an error_code or an exception_ptr, and what follows "
                  "must be default constructible.");

public:
    retry_supervisor(Handler&& handler, const Executor& executor,
                     std::shared_ptr<const Policy> policy, Op&& op, std::uint64_t seed,
                     std::shared_ptr<retry_state> state)
        : base(std::move(handler), executor), policy_(std::move(policy)), original_(std::move(op)),
          state_(std::move(state)), sequence_(policy_->settings(), now(), seed)
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
        const nanoseconds limit = sequence_.limit(now());
        const retry_settings& settings = policy_->settings();
        const timeout_name name = limit == settings.each
                                      ? timeout_name{"retry: timeout_each", settings.each}
                                      : timeout_name{"retry: timeout_total", settings.total};
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
            sequence_.take_back();
            retry_state::count(state_->cancelled);
            return this->finish_with(traits::from_error(asio::error::operation_aborted));
        }
        if (events.expired) {
            sleeping_ = false;
            attempt();
        }
    }

    // What the user's functions throw is the result, then; or that there is no memory to wait.
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
        bool retryable = ask_about(policy_->predicate(), reason, result);
        if (!retryable && !reason) {
            retry_state::count(state_->succeeded);
            return false;
        }
        std::optional<nanoseconds> hint;
        if (retryable) {
            if (const auto asked = ask_about(policy_->hint(), reason, result))
                hint = saturating_nanoseconds(*asked);
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(policy_->predicate())>,
                                     retry_transient_failures>)
            retryable = retryable && (hint || !is_refusal(reason));
        const std::uint32_t failed = sequence_.attempt();
        const auto decision = sequence_.failed(now(), retryable, hint);
        if (decision.refusal != retry_refusal::none) {
            state_->refuse(decision.refusal);
            return false;
        }
        try {
            const retry_event event{failed, decision.delay, reason};
            if (const auto& listener = policy_->settings().listener)
                listener(event);
            state_->tell(event);
            sleep(decision.delay);
        } catch (...) {
            sequence_.take_back();
            throw;
        }
        return true;
    }

    // By the timer also if there is no delay: others, and a cancellation, get their turn between
    // two attempts, even if neither gets as far as to wait for anything.
    void sleep(nanoseconds delay)
    {
        sleeping_ = true;
        this->start_timer(deadline_after<Clock>(Clock::now(), delay));
    }

    std::shared_ptr<const Policy> policy_;
    Op original_;
    std::shared_ptr<retry_state> state_;
    retry_sequence sequence_;
    typename base::operation_type operation_;
    bool sleeping_ = false;
    bool cancelled_ = false;
};

} // namespace turnstile::inline v0_1::detail
