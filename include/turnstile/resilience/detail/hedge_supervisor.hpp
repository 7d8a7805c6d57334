// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/enum_names.hpp>
#include <turnstile/detail/call/supervisor.hpp>
#include <turnstile/detail/util/saturating_time.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>
#include <turnstile/resilience/detail/supervising_object.hpp>
#include <turnstile/resilience/hedge_policy.hpp>

#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace turnstile::inline v0_1 {

/// What the listeners of a hedge are told.
struct hedge_event {
    enum kind_type : unsigned char {
        started, ///< Another attempt begins beside the first.
        won,     ///< Such a one has succeeded before all others.
    };

    kind_type kind;
    std::uint32_t attempt; ///< Which; the first one that is told of is 2.
    nanoseconds elapsed;   ///< Since the call began.
};

template <>
inline constexpr auto detail::enum_names<hedge_event::kind_type> =
    std::to_array<std::string_view>({"started", "won"});

namespace detail {

class hedge_state : public supervised_state<hedge_event> {
public:
    explicit hedge_state(const hedge_policy& p) : policy(p) {}

    nanoseconds delay() const noexcept
    {
        const std::lock_guard lock(mutex_);
        return policy.delay(latencies_);
    }
    void learn(nanoseconds latency) noexcept
    {
        const std::lock_guard lock(mutex_);
        latencies_.add(latency);
    }

    const hedge_policy policy;
    counter calls{0};
    counter attempts{0};
    counter hedged{0};
    counter hedge_won{0};

private:
    mutable spin_mutex mutex_;
    latency_estimator latencies_;
};

// Runs up to N attempts at an operation side by side, until one succeeds.
template <class Op, class Clock, class Signature, class Handler, class Executor>
class hedge_supervisor final
    : public supervisor<hedge_supervisor<Op, Clock, Signature, Handler, Executor>, Signature,
                        Handler, Executor, Clock> {
    using base = supervisor<hedge_supervisor, Signature, Handler, Executor, Clock>;
    using traits = result_traits<Signature>;
    using box_type = typename base::box_type;
    static_assert(traits::can_make_failure,
                  "Hedging needs to tell failure from success, and to report it: the operation's "
                  "signature must start with an error_code or an exception_ptr, and what follows "
                  "must be default constructible.");

public:
    hedge_supervisor(Handler&& handler, const Executor& executor, Op&& op,
                     std::shared_ptr<hedge_state> state)
        : base(std::move(handler), executor), original_(std::move(op)), state_(std::move(state)),
          delay_(state_->delay())
    {
    }

    void begin()
    {
        hedge_state::count(state_->calls);
        started_ = Clock::now();
        attempt();
    }

private:
    struct attempt_type : base::operation_type {
        std::size_t number = 0;
    };

    void tell(hedge_event::kind_type kind, std::size_t number) noexcept
    {
        state_->tell(
            {kind, static_cast<std::uint32_t>(number), time_between(started_, Clock::now())});
    }

    bool may_start_another() const noexcept
    {
        return attempts_.size() < state_->policy.attempts() && !stopping_;
    }

    // Whatever may throw comes first.
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
            initiate(Op(original_), this->strand(), std::move(handler));
        });
    }

    // The wait for the attempt after the one that is about to begin.
    void wait_for_next()
    {
        if (attempts_.size() >= state_->policy.attempts())
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

    // Without memory for another attempt, those that are there have to do.
    void start_another(std::size_t running)
    {
        try {
            attempt();
        } catch (...) {
            stopping_ = true;
            if (running == 0)
                this->finish(std::move(last_failure_));
        }
    }

    // True if it has failed.
    bool completed(attempt_type& a, box_type&& result)
    {
        if (traits::failure_of(*result)) {
            last_failure_ = take_from(result);
            return true;
        }
        if (this->is_finished())
            return false; // too late
        // How long the call has taken, not the winner alone: otherwise those that were hedged
        // because they are slow would count as fast.
        state_->learn(time_between(started_, Clock::now()));
        if (a.number != 1) {
            hedge_state::count(state_->hedge_won);
            tell(hedge_event::won, a.number);
        }
        this->finish(std::move(result));
        stop(asio::cancellation_type::all);
        return false;
    }

    // Those that are under way are cancelled, and no more begin.
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
    std::list<attempt_type, asio::recycling_allocator<attempt_type>> attempts_;
    typename Clock::time_point started_{};
    box_type last_failure_;
    bool stopping_ = false;
};

} // namespace detail
} // namespace turnstile::inline v0_1
