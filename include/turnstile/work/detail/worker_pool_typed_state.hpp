// SPDX-License-Identifier: BSL-1.0
// The state of a worker_pool with the types of the user: the jobs, their results, and the functions
// of the options. The source of its workers owns the handler, whose type only it knows.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/work/detail/worker_pool_job.hpp>
#include <turnstile/work/detail/worker_pool_state.hpp>
#include <turnstile/work/worker_pool_options.hpp>

#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

// The result of a handler for one job, which may be void.
template <class Returned>
struct handler_result {
    using type = Returned;
};
template <class T, class Executor>
struct handler_result<asio::awaitable<T, Executor>> {
    using type = T;
};
template <operation Returned>
struct handler_result<Returned> {
    using value = result_value_t<operation_signature_t<Returned>>;
    using type = std::conditional_t<std::is_same_v<value, std::monostate>, void, value>;
};

template <class Handler, class Job>
using returned_t = std::invoke_result_t<Handler&, Job&>;
template <class Handler, class Job>
using handler_result_t = typename handler_result<std::decay_t<returned_t<Handler, Job>>>::type;

// Whether the handler takes a job, and returns the result of the pool. A pool without results
// ignores what the handler returns.
template <class Handler, class Job, class Result>
concept job_handler = std::invocable<Handler&, Job&> &&(std::is_void_v<Result> || requires {
    requires std::is_constructible_v < std::conditional_t < std::is_void_v<Result>,
    int, Result >, handler_result_t < Handler, Job >> ;
});

// Makes the workers; it owns the handler.
template <class State>
struct worker_source {
    virtual ~worker_source() = default;
    virtual std::unique_ptr<typename State::worker> make(State& state) = 0;
};

template <class Job, class Result, class Executor, class Threading, clock_policy Clock>
class typed_worker_pool_state final : public timed_worker_pool_state<Threading, Clock> {
    using base = timed_worker_pool_state<Threading, Clock>;

public:
    using typename base::worker;
    using job_type = Job;
    using result_type = Result;
    using executor_type = Executor;
    using threading_policy = Threading;
    using source_type = worker_source<typed_worker_pool_state>;
    using job_with_result = pool_job_with_result<Job, Result>;

    typed_worker_pool_state(const Executor& executor, worker_pool_options<Job>&& options,
                            std::unique_ptr<source_type> source)
        : base(executor, pool_limits{options.capacity, options.job_timeout,
                                     static_cast<bool>(options.priority)}),
          executor_(executor), options_(std::move(options)), source_(std::move(source))
    {
        this->resize(options_.workers);
    }

    // Null if the pool is closed; the job was not moved from then. Node is the type to be made.
    template <class Node, class J>
    pool_job_ptr make_job(J&& job)
    {
        if (this->is_closed())
            return nullptr;
        const int priority = options_.priority ? options_.priority(std::as_const(job)) : 0;
        return pool_job_ptr(new Node(priority, std::forward<J>(job)));
    }

    // For the workers, while the execution context exists.
    const Executor& worker_executor() const noexcept { return *executor_; }
    static Job& job_of(const worker& w) noexcept
    {
        return static_cast<typed_pool_job<Job>*>(w.job())->value;
    }
    // Keeps the result of the running job for its caller.
    template <class... Value>
    static void keep_result(const worker& w, Value&&... value)
    {
        if constexpr (!std::is_void_v<Result>)
            if (w.job()->has_caller)
                static_cast<job_with_result*>(w.job())->result.emplace(
                    std::forward<Value>(value)...);
    }

private:
    std::unique_ptr<worker> make_worker() override { return source_->make(*this); }
    void report_error(pool_job& j, std::exception_ptr thrown) noexcept override
    {
        if (!options_.on_error)
            return;
        try {
            options_.on_error(static_cast<typed_pool_job<Job>&>(j).value, std::move(thrown));
        } catch (...) { // documented as ignored
        }
    }
    void discard(pool_job& j) noexcept override
    {
        if (!options_.on_discard)
            return;
        try {
            options_.on_discard(std::move(static_cast<typed_pool_job<Job>&>(j).value));
        } catch (...) { // documented as ignored
        }
    }
    void keep_exception(pool_job& j, std::exception_ptr thrown) noexcept override
    {
        static_cast<job_with_result&>(j).thrown = std::move(thrown);
    }
    void forget_executor() noexcept override { executor_.reset(); }

    std::optional<Executor> executor_;
    const worker_pool_options<Job> options_;
    const std::unique_ptr<source_type> source_;
};

} // namespace turnstile::inline v0_1::detail
