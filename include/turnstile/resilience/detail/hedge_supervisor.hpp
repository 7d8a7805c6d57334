// SPDX-License-Identifier: BSL-1.0
//
// The supervisor of one call of basic_hedge: it runs up to max_attempts attempts side by side until
// one succeeds. A further attempt begins when the timer expires or an attempt fails. The first
// success is the result; the other attempts are cancelled, and the call completes when all of them
// have completed.
#pragma once

#include <turnstile/detail/call/numbered_operation.hpp>
#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/detail/util/synchronization.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/hedge_machine.hpp>
#include <turnstile/resilience/hedge_options.hpp>
#include <turnstile/resilience/retry_budget.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The state that all calls of one basic_hedge share: the machine, counters and listeners.
class hedge_state : public supervised_state<hedge_event> {
public:
    explicit hedge_state(const hedge_options& options) : machine_(options) {}

    nanoseconds delay() const noexcept
    {
        const std::lock_guard lock(mutex_);
        return machine_.delay();
    }
    void learn(nanoseconds latency) noexcept
    {
        const std::lock_guard lock(mutex_);
        machine_.learn(latency);
    }

    std::uint32_t max_attempts() const noexcept { return machine_.options().max_attempts; }

    // The budget of further attempts, if there is one.
    void deposit(nanoseconds now) noexcept
    {
        if (const auto& budget = machine_.options().budget)
            budget->deposit(now);
    }
    bool withdraw(nanoseconds now) noexcept
    {
        const auto& budget = machine_.options().budget;
        return !budget || budget->withdraw(now);
    }
    void refund() noexcept
    {
        if (const auto& budget = machine_.options().budget)
            budget->refund();
    }

    counter calls{0};
    counter attempts{0};
    counter hedged{0};
    counter hedge_won{0};

private:
    mutable spin_mutex mutex_;
    hedge_machine machine_;
};

// Runs attempts at an operation side by side until one succeeds.
template <class Op, class Clock, class Signature, class Handler, class Executor>
class hedge_supervisor final
    : public supervisor<hedge_supervisor<Op, Clock, Signature, Handler, Executor>, Signature,
                        Handler, Executor, Clock> {
    using base = supervisor<hedge_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;
    using box_type = typename base::box_type;

public:
    hedge_supervisor(Handler&& handler, const Executor& executor, Op&& op,
                     std::shared_ptr<hedge_state> state)
        : base(std::move(handler), executor), original_(std::move(op)), state_(std::move(state)),
          delay_(state_->delay()), attempts_(attempt_allocator(this->get_allocator()))
    {
    }

    void begin()
    {
        hedge_state::count(state_->calls);
        state_->deposit(now_on<Clock>());
        started_ = Clock::now();
        attempt();
    }

private:
    struct attempt_type : base::operation_type {
        std::size_t number = 0;
    };
    using attempt_allocator = typename std::allocator_traits<
        typename base::allocator_type>::template rebind_alloc<attempt_type>;

    void tell(hedge_event::kind_type kind, std::size_t number) noexcept
    {
        state_->tell(
            {kind, static_cast<std::uint32_t>(number), time_between(started_, Clock::now())});
    }

    bool may_start_another() const noexcept
    {
        return attempts_.size() < state_->max_attempts() && !stopping_;
    }

    // Everything that may throw comes before the attempt is counted and started.
    void attempt()
    {
        attempts_.emplace_back();
        attempts_.back().number = attempts_.size();
        try {
            wait_for_next();
        } catch (...) {
            attempts_.pop_back();
            throw;
        }
        hedge_state::count(state_->attempts);
        if (attempts_.size() == 2)
            hedge_state::count(state_->hedged);
        if (attempts_.size() >= 2)
            tell(hedge_event::started, attempts_.size());
        this->start_operation(attempts_.back(), [&](auto handler) {
            initiate(numbered_copy(original_, attempts_.size()), this->strand(),
                     std::move(handler));
        });
    }

    // Starts the timer for the attempt after the one that is about to begin.
    void wait_for_next()
    {
        if (attempts_.size() >= state_->max_attempts())
            return;
        this->start_timer(deadline_after<Clock>(Clock::now(), delay_));
    }

    void handle(supervised_events events) override
    {
        bool failed = false;
        std::size_t running = 0;
        for (attempt_type& a : attempts_) {
            if (auto result = a.take())
                failed = completed(a, std::move(result)) || failed;
            running += a.running ? 1 : 0;
        }
        if (events.cancelled != asio::cancellation_type::none)
            stop(events.cancelled);
        if ((events.expired || failed) && may_start_another())
            start_another(running);
        else if (running == 0 && !this->is_finished())
            this->finish(std::move(last_failure_));
    }

    // Without a token or memory for another attempt, the call continues with the attempts it has.
    void start_another(std::size_t running)
    {
        if (state_->withdraw(now_on<Clock>())) {
            try {
                return attempt();
            } catch (...) {
                state_->refund();
            }
        }
        stopping_ = true;
        if (running == 0)
            this->finish(std::move(last_failure_));
    }

    // Returns whether the attempt has failed.
    bool completed(attempt_type& a, box_type&& result)
    {
        if (traits::failure_of(*result)) {
            last_failure_ = take_from(result);
            return true;
        }
        if (this->is_finished())
            return false; // another attempt has succeeded before
        state_->learn(time_between(started_, Clock::now()));
        if (a.number != 1) {
            hedge_state::count(state_->hedge_won);
            tell(hedge_event::won, a.number);
        }
        this->finish(std::move(result));
        stop(asio::cancellation_type::all);
        return false;
    }

    // Cancels the outstanding attempts, and starts no more.
    void stop(asio::cancellation_type_t type)
    {
        stopping_ = true;
        this->stop_timer();
        for (attempt_type& a : attempts_)
            a.cancel(type);
    }

    Op original_;
    std::shared_ptr<hedge_state> state_;
    nanoseconds delay_;
    std::list<attempt_type, attempt_allocator> attempts_;
    typename Clock::time_point started_{};
    box_type last_failure_;
    bool stopping_ = false;
};

template <class Clock, class Signature, class Handler, class Executor, class Op>
void run_with_hedges(Handler&& handler, const Executor& executor, Op&& op,
                     std::shared_ptr<hedge_state> state)
{
    constexpr bool can_report = result_traits<Signature>::can_make_failure;
    static_assert(can_report,
                  "A hedge must distinguish failure from success, and report it: the operation's "
                  "signature must start with an error_code or an exception_ptr, and its other "
                  "arguments must be default constructible.");
    // Without this condition the supervisor would add errors that do not explain the mistake.
    if constexpr (can_report) {
        using runner = hedge_supervisor<Op, Clock, Signature, Handler, Executor>;
        runner::run(
            std::forward<Handler>(handler), executor, [](runner& self) { self.begin(); },
            std::forward<Op>(op), std::move(state));
    }
}

} // namespace turnstile::inline v0_1::detail
