// SPDX-License-Identifier: BSL-1.0
// A fixed number of workers that run the jobs of a queue.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/worker_pool_request.hpp>
#include <turnstile/work/detail/worker_pool_worker.hpp>
#include <turnstile/work/worker_pool_options.hpp>

#include <boost/assert.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Workers that run the jobs of a queue, each with the same handler. The handler is called with a
/// reference to a job, and is one of these:
/// - A coroutine: it returns an `asio::awaitable`.
/// - A function that returns another operation, for example an initiating function with
///   `asio::deferred`.
/// - A plain function. It runs on the executor of the pool and cannot be cancelled; for work that
///   occupies the CPU, construct the pool on a `thread_pool`.
///
/// Each job of a coroutine or an operation runs on the strand of its worker, on top of the pool's
/// executor; the jobs of a `local::worker_pool` run on the pool's executor itself. Several workers
/// may call the handler at the same time, unless the pool's executor is a strand. A job fails if
/// the handler throws or its operation completes with an error; the worker continues with the next
/// job. Each submitted job ends once: it is done, or reaches `on_error` or `on_discard`, unless it
/// is cut off by the destruction of the pool or of the execution context, or its operation is
/// destroyed without having completed.
///
/// A pool without jobs is no outstanding work of its execution context, and has no timer.
///
/// @tparam Result The results that `async_run` delivers; void: none.
/// @par Thread safety
/// Any thread may call any function of a `worker_pool`; a `local::worker_pool` is confined to one
/// strand. A handler may call the functions of its own pool. It must not wait for a place, for the
/// pool to be idle, or for its shutdown, if the pool can make no progress without this job.
/// @par Destruction
/// Shut the pool down first. The destructor discards the queued jobs, cancels those that run, and
/// does not wait for them; they keep what they need of the pool, and `on_error` is not called any
/// more. In a debug build it asserts that no job is left, unless a deadline of `async_shutdown` has
/// cut the jobs off, or the execution context has stopped or is being destroyed. Every waiter
/// completes with `operation_aborted`.
template <class Job, class Result = void, class Executor = asio::any_io_executor,
          class Threading = thread_safe, clock_policy Clock = default_clock>
class basic_worker_pool
    : public detail::io_object<
          Executor, Threading,
          detail::typed_worker_pool_state<Job, Result, Executor, Threading, Clock>> {
    using state_type = detail::typed_worker_pool_state<Job, Result, Executor, Threading, Clock>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    using job_type = Job;
    using result_type = Result;

    template <class Other>
    struct rebind_executor {
        using other = basic_worker_pool<Job, Result, Other, Threading, Clock>;
    };

    /// Makes a pool. Its jobs run on `executor`. Throws `system_error` with
    /// `errc::invalid_argument` if an option breaks its rule, or if `handler` is null.
    template <detail::job_handler<Job, Result> Handler>
    basic_worker_pool(const std::type_identity_t<Executor>& executor,
                      worker_pool_options<Job> options, Handler handler)
        : base(executor, checked(std::move(options)), make_source(std::move(handler)))
    {
    }

    /// Equivalent to `basic_worker_pool(context.get_executor(), options, handler)`.
    template <detail::execution_context Context, detail::job_handler<Job, Result> Handler>
    basic_worker_pool(Context& context, worker_pool_options<Job> options, Handler handler)
        : basic_worker_pool(context.get_executor(), std::move(options), std::move(handler))
    {
    }

    ~basic_worker_pool()
    {
        [[maybe_unused]] const bool is_shut_down = this->state_pointer()->abandon();
        BOOST_ASSERT_MSG(is_shut_down, "a worker_pool was destroyed while it has jobs");
    }

    /// Waits for a place in the queue, and submits a job.
    ///
    /// @par Completes when
    /// a place is free, every earlier request for one was granted, and the job is queued.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `errc::closed` after a shutdown has begun: if that was so at the call, `job` was not moved
    /// from. `operation_aborted` if the wait was cancelled or the pool was destroyed. The job was
    /// not submitted then.
    /// @par Executor
    /// The handler's associated executor, by default the pool's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait, and does not reach a job that was submitted.
    /// @par Cancel safety
    /// If the operation is cancelled before its handler runs, the job was not submitted.
    /// @par Fairness
    /// FIFO, together with `async_run`.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_submit(Job&& job, Token&& token = Token())
    {
        return start_submit(std::move(job), std::forward<Token>(token));
    }
    /// The same with a copy of `job`.
    template <token_for<void> Token = default_token_t<Executor>>
        requires std::copy_constructible<Job>
    auto async_submit(const Job& job, Token&& token = Token())
    {
        return start_submit(job, std::forward<Token>(token));
    }

    /// Submits a job if a place is free and no operation waits for one.
    ///
    /// @par Errors
    /// `errc::rejected` if there is no place; `errc::closed` after a shutdown has begun. `job` was
    /// not moved from then, unless another thread discards the jobs at the same time.
    template <class J>
        requires std::same_as<std::remove_cvref_t<J>, Job>
    [[nodiscard]] bool try_submit(J&& job, error_code& ec)
    {
        ec = this->state().take_place().error();
        if (ec)
            return false;
        detail::pool_job_ptr made;
        try {
            made = make_job<detail::typed_pool_job<Job>>(std::forward<J>(job));
        } catch (...) {
            this->state().give_place_back();
            throw;
        }
        if (!made) {
            this->state().give_place_back();
            ec = errc::closed;
            return false;
        }
        ec = this->state().enter(*made).error();
        if (!ec)
            static_cast<void>(made.release());
        return !ec;
    }
    /// The same without the reason.
    template <class J>
        requires std::same_as<std::remove_cvref_t<J>, Job>
    [[nodiscard]] bool try_submit(J&& job)
    {
        error_code ignored;
        return try_submit(std::forward<J>(job), ignored);
    }

    /// Submits a job as `async_submit` does, and waits for its result.
    ///
    /// @par Completes when
    /// the job has ended.
    /// @par Completion signature
    /// `void(error_code)` if Result is void. Otherwise `void(error_code, Result)`, or
    /// `void(error_code, std::optional<Result>)` if Result cannot be default constructed.
    /// @par Errors
    /// A coroutine that awaits with `use_awaitable` is thrown the exception of the job. Other
    /// tokens receive its error code (see `failure::code`). `errc::timed_out` if the job was
    /// cancelled by `job_timeout`; `errc::closed` if a shutdown has begun before the job was
    /// queued, or has discarded it; `operation_aborted` if the operation was cancelled or the pool
    /// was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the pool's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. A job that has not started is destroyed. A job that runs is
    /// cancelled (terminal), and the operation does not wait for its end; if it then fails with
    /// another error than `operation_aborted`, `on_error` receives it.
    /// @par Cancel safety
    /// If the operation is cancelled before its handler runs, a result of the job is dropped.
    /// @par Fairness
    /// FIFO, together with `async_submit`.
    template <token_for<typename detail::delivered_result<Result>::type> Token =
                  default_token_t<Executor>>
    auto async_run(Job&& job, Token&& token = Token())
    {
        return start_run(std::move(job), std::forward<Token>(token));
    }
    /// The same with a copy of `job`.
    template <token_for<typename detail::delivered_result<Result>::type> Token =
                  default_token_t<Executor>>
        requires std::copy_constructible<Job>
    auto async_run(const Job& job, Token&& token = Token())
    {
        return start_run(job, std::forward<Token>(token));
    }

    /// Waits until the pool has no job.
    ///
    /// @par Completes when
    /// no job is queued or runs, and no granted `async_submit` has yet to queue its job.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the pool was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the pool's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing.
    /// @par Fairness
    /// All waiters complete at the same time.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_idle(Token&& token = Token())
    {
        return detail::start_wait(
            detail::pool_idle_request<state_type>{{&this->executor(), this->state_pointer()}},
            std::forward<Token>(token));
    }

    /// Refuses further jobs, resumes a paused pool, and waits until no job is left. Several calls
    /// are possible; the strictest mode and the earliest deadline apply.
    ///
    /// @param mode Whether queued jobs run, or are discarded.
    /// @param deadline The time after which the jobs that are left are cut off: queued ones are
    /// discarded, and running ones cancelled (terminal). The operation waits for these. The maximum
    /// of the type sets no deadline. Must not be negative.
    /// @par Completes when
    /// no job is queued or runs, and `on_discard` has returned.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `errc::timed_out` if jobs were cut off at a deadline; `errc::invalid_argument` if `deadline`
    /// is negative, and nothing has changed then; `operation_aborted` if the wait was cancelled or
    /// the pool was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the pool's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait only: the shutdown continues.
    /// @par Cancel safety
    /// A wait consumes nothing. Any number of operations can wait.
    /// @par Fairness
    /// All waiters complete at the same time.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_shutdown(shutdown_mode mode, nanoseconds deadline, Token&& token = Token())
    {
        return detail::start_wait(
            detail::pool_shutdown_request<state_type>{
                {&this->executor(), this->state_pointer()}, mode, deadline},
            std::forward<Token>(token));
    }
    /// The same without a deadline.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_shutdown(shutdown_mode mode, Token&& token = Token())
    {
        return async_shutdown(mode, nanoseconds::max(), std::forward<Token>(token));
    }
    /// The same without a deadline; queued jobs run.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_shutdown(Token&& token = Token())
    {
        return async_shutdown(shutdown_mode::drain, std::forward<Token>(token));
    }

    /// Starts no further job; those that run continue. No effect after a shutdown has begun.
    void pause() noexcept { this->state().set_paused(true); }
    /// Starts jobs again.
    void resume() noexcept { this->state().set_paused(false); }
    /// Whether the pool is paused.
    [[nodiscard]] bool is_paused() const noexcept { return this->state().is_paused(); }

    /// Changes the number of workers. A smaller pool lets the jobs that run end. Throws
    /// `system_error` with `errc::invalid_argument` if `workers` is 0, or `bad_alloc`; nothing has
    /// changed then.
    void resize(std::size_t workers) { this->state().resize(workers); }
    /// Likewise; sets `ec` instead of throwing `system_error`.
    void resize(std::size_t workers, error_code& ec)
    {
        ec = workers == 0 ? make_error_code(errc::invalid_argument) : error_code();
        if (!ec)
            resize(workers);
    }

    /// Whether the pool refuses jobs, because a shutdown has begun.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The number of jobs that can be queued.
    [[nodiscard]] std::size_t capacity() const noexcept { return this->state().capacity(); }
    /// The figures of the pool.
    [[nodiscard]] worker_pool_stats stats() const noexcept { return this->state().stats(); }

private:
    static worker_pool_options<Job> checked(worker_pool_options<Job>&& options)
    {
        const char* wrong = nullptr;
        if (options.workers == 0)
            wrong = "worker_pool: workers must not be 0";
        else if (options.capacity == 0)
            wrong = "worker_pool: capacity must not be 0";
        else if (options.job_timeout <= nanoseconds::zero())
            wrong = "worker_pool: job_timeout must be positive";
        detail::throw_if_wrong(wrong);
        return std::move(options);
    }

    template <class Handler>
    static std::unique_ptr<typename state_type::source_type> make_source(Handler&& handler)
    {
        if constexpr (requires { handler == nullptr; })
            if (handler == nullptr)
                detail::throw_if_wrong("worker_pool: handler must not be null");
        return std::make_unique<detail::handler_source<state_type, Handler>>(
            std::forward<Handler>(handler));
    }

    template <class Node, class J>
    detail::pool_job_ptr make_job(J&& job)
    {
        return this->state_pointer()->template make_job<Node>(std::forward<J>(job));
    }

    template <class J, class Token>
    auto start_submit(J&& job, Token&& token)
    {
        return detail::start_wait(
            detail::pool_submit_request<state_type>{
                {&this->executor(), this->state_pointer()},
                make_job<detail::typed_pool_job<Job>>(std::forward<J>(job))},
            std::forward<Token>(token));
    }
    template <class J, class Token>
    auto start_run(J&& job, Token&& token)
    {
        return detail::start_wait(
            detail::pool_run_request<state_type>{
                {&this->executor(), this->state_pointer()},
                make_job<typename state_type::job_with_result>(std::forward<J>(job))},
            std::forward<Token>(token));
    }
};

/// The worker pool for any thread and any executor.
template <class Job, class Result = void>
class worker_pool : public basic_worker_pool<Job, Result> {
public:
    using basic_worker_pool<Job, Result>::basic_worker_pool;
};
template <class Source, class Job, class Handler>
worker_pool(Source&&, worker_pool_options<Job>, Handler)
    -> worker_pool<Job, detail::handler_result_t<Handler, Job>>;

namespace local {

/// The worker pool for one strand: it needs no atomic operations, no internal lock and no strands.
template <class Job, class Result = void>
class worker_pool : public basic_worker_pool<Job, Result, asio::any_io_executor, strand_confined> {
public:
    using basic_worker_pool<Job, Result, asio::any_io_executor, strand_confined>::basic_worker_pool;
};
template <class Source, class Job, class Handler>
worker_pool(Source&&, worker_pool_options<Job>, Handler)
    -> worker_pool<Job, detail::handler_result_t<Handler, Job>>;

} // namespace local
} // namespace turnstile::inline v0_1
