// SPDX-License-Identifier: BSL-1.0
// The workers of a worker_pool. There are three kinds, by what the handler returns for a job:
//
//   awaitable       A coroutine awaits one job after the other. It is started with co_spawn when
//                   the worker begins, and returns when no job is queued.
//   an operation    It is started as a child of the worker; the child's end starts the next job.
//   anything else   The handler is a plain function, and its return value is the result. It is
//                   called on the executor of the pool, and not cancelled.
//
// Invariant: a worker runs at most one job at a time, and posts itself behind other work after
// `max_jobs_in_a_row` jobs.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/work/detail/worker_pool_typed_state.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

inline constexpr unsigned max_jobs_in_a_row = 128;

// A worker with a strand, on which its operation runs.
template <class State, class Handler>
class strand_worker : public State::worker {
    using threading = typename State::threading_policy;
    using lease_type = policy_lease<typename State::executor_type, threading>;

public:
    strand_worker(State& state, Handler& handler)
        : State::worker(state), state_(state), handler_(handler)
    {
    }

    // For child_operation.
    const lease_type& lease() const noexcept { return *lease_; }
    cached_allocator<void> get_allocator() const noexcept { return {}; }

protected:
    // The operation of a worker holds a reference to the state, which owns the worker.
    template <class Worker>
    struct reference {
        explicit reference(Worker& w) : state(&w.state_), target(&w) {}
        Worker* operator->() const noexcept { return target; }
        Worker& operator*() const noexcept { return *target; }
        boost::intrusive_ptr<State> state;
        Worker* target;
    };

    decltype(auto) call_handler() { return std::invoke(handler_, State::job_of(*this)); }
    void leave() noexcept { state_.left(*this); }

    State& state_;

private:
    void dispatch(strand_call<threading> call) final
    {
        if (!lease_)
            lease_.emplace(state_.worker_executor());
        if constexpr (threading::is_confined)
            call();
        else
            asio::dispatch(lease_->executor(), std::move(call));
    }
    void give_back_strand() noexcept final { lease_.reset(); }

    Handler& handler_;
    std::optional<lease_type> lease_;
};

// The handler is a coroutine.
template <class State, class Handler>
class coroutine_worker final : public strand_worker<State, Handler> {
    using base = strand_worker<State, Handler>;
    using self = typename base::template reference<coroutine_worker>;
    using returned = returned_t<Handler, typename State::job_type>;
    using runs_on = typename awaitable_traits<returned>::executor_type;
    using loop_type = asio::awaitable<void, runs_on>;
    using child_type = child_operation<void(std::exception_ptr)>;
    struct loop_operation {
        coroutine_worker* worker;
        loop_type operator()() const { return worker->run_jobs(); }
    };

public:
    using base::base;

    // For child_operation. The loop ends with its last job, or could not be started.
    void complete(child_type& child) noexcept
    {
        if (!this->job()) {
            child.result.reset(); // the child is used again
            return this->leave();
        }
        std::exception_ptr thrown;
        try {
            thrown = child.exception();
        } catch (...) {
            thrown = std::current_exception();
        }
        child.thrown = nullptr;
        child.result.reset();
        this->state_.end_job(*this, std::move(thrown), true);
    }
    void drop(child_type&) noexcept { this->state_.dropped(*this); }

private:
    void run() noexcept override
    {
        if (!this->state_.take_first(*this))
            return this->leave();
        std::optional<loop_operation> loop(loop_operation{this});
        start_child(loop, self(*this), child_);
    }
    void emit() noexcept override { child_.cancel(asio::cancellation_type::terminal); }

    // Each job begins with the cancellation state of a new coroutine.
    loop_type run_jobs()
    {
        for (unsigned n = 1;; ++n) {
            co_await asio::this_coro::reset_cancellation_state();
            co_await asio::this_coro::throw_if_cancelled(true);
            if (n % max_jobs_in_a_row == 0)
                co_await asio::post(this->state_.worker_executor(),
                                    asio::use_awaitable_t<runs_on>());
            std::exception_ptr thrown;
            try {
                if constexpr (std::is_void_v<handler_result_t<Handler, typename State::job_type>>)
                    co_await this->call_handler();
                else
                    State::keep_result(*this, co_await this->call_handler());
            } catch (...) {
                thrown = std::current_exception();
            }
            if (!this->state_.end_job(*this, std::move(thrown), false))
                co_return;
        }
    }

    child_type child_;
};

// The handler returns an operation.
template <class State, class Handler>
class operation_worker final : public strand_worker<State, Handler> {
    using base = strand_worker<State, Handler>;
    using self = typename base::template reference<operation_worker>;
    using operation_type = std::decay_t<returned_t<Handler, typename State::job_type>>;
    using child_type = child_operation<operation_signature_t<operation_type>>;

public:
    using base::base;

    // For child_operation. An operation that ends while it is started is left to run_jobs().
    void complete(child_type& child) noexcept
    {
        std::exception_ptr thrown;
        try {
            thrown = child.exception();
            if (!thrown)
                State::keep_result(*this, child.take_value());
        } catch (...) {
            thrown = std::current_exception();
        }
        thrown_ = std::move(thrown);
        child.thrown = nullptr; // the child is used again
        child.result.reset();
        if (progress_.exchange(progress::ended, std::memory_order_acq_rel) == progress::started)
            if (end_job(++jobs_in_a_row_))
                run_jobs();
    }
    void drop(child_type&) noexcept
    {
        was_dropped_ = true;
        if (progress_.exchange(progress::ended, std::memory_order_acq_rel) == progress::started)
            this->state_.dropped(*this);
    }

private:
    enum class progress : unsigned char { starting, started, ended };

    void run() noexcept override
    {
        if (!this->state_.take_first(*this))
            return this->leave();
        jobs_in_a_row_ = 0;
        run_jobs();
    }
    void emit() noexcept override { child_.cancel(asio::cancellation_type::terminal); }

    // Starts the operation of the job, and those of the next ones as long as they end at once.
    void run_jobs() noexcept
    {
        const self keep_alive(*this);
        do {
            progress_.store(progress::starting, std::memory_order_relaxed);
            was_dropped_ = false;
            std::optional<operation_type> op;
            try {
                op.emplace(this->call_handler());
            } catch (...) {
                thrown_ = std::current_exception();
                continue;
            }
            start_child(op, keep_alive, child_);
            if (progress_.exchange(progress::started, std::memory_order_acq_rel) ==
                progress::starting)
                return;
            if (was_dropped_)
                return this->state_.dropped(*this);
        } while (end_job(++jobs_in_a_row_));
    }

    // Returns whether the worker has another job.
    bool end_job(unsigned jobs_in_a_row) noexcept
    {
        const bool yields = jobs_in_a_row == max_jobs_in_a_row;
        if (this->state_.end_job(*this, std::exchange(thrown_, nullptr), yields))
            return true;
        if (!yields)
            this->leave();
        return false;
    }

    child_type child_;
    std::exception_ptr thrown_;
    std::atomic<progress> progress_{progress::ended};
    bool was_dropped_ = false;
    unsigned jobs_in_a_row_ = 0;
};

// The handler is a plain function.
template <class State, class Handler>
class function_worker final : public State::worker {
public:
    function_worker(State& state, Handler& handler)
        : State::worker(state), state_(state), handler_(handler)
    {
    }

private:
    void dispatch(strand_call<typename State::threading_policy> call) override { call(); }
    void give_back_strand() noexcept override {}
    void emit() noexcept override {}

    void run() noexcept override
    {
        if (!state_.take_first(*this))
            return state_.left(*this);
        for (unsigned n = 1;; ++n) {
            std::exception_ptr thrown;
            try {
                if constexpr (std::is_void_v<returned_t<Handler, typename State::job_type>>)
                    std::invoke(handler_, State::job_of(*this));
                else
                    State::keep_result(*this, std::invoke(handler_, State::job_of(*this)));
            } catch (...) {
                thrown = std::current_exception();
            }
            const bool yields = n == max_jobs_in_a_row;
            if (state_.end_job(*this, std::move(thrown), yields))
                continue;
            if (!yields)
                state_.left(*this);
            return;
        }
    }

    State& state_;
    Handler& handler_;
};

template <class State, class Handler>
class handler_source final : public worker_source<State> {
    using returned = std::decay_t<returned_t<Handler, typename State::job_type>>;

public:
    explicit handler_source(Handler&& handler) : handler_(std::move(handler)) {}

    std::unique_ptr<typename State::worker> make(State& state) override
    {
        if constexpr (awaitable_value<returned>)
            return std::make_unique<coroutine_worker<State, Handler>>(state, handler_);
        else if constexpr (operation<returned>)
            return std::make_unique<operation_worker<State, Handler>>(state, handler_);
        else
            return std::make_unique<function_worker<State, Handler>>(state, handler_);
    }

private:
    Handler handler_;
};

} // namespace turnstile::inline v0_1::detail
