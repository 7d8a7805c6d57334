// SPDX-License-Identifier: BSL-1.0
// The waiting operations of worker_pool: async_submit, async_idle and async_shutdown. async_run
// waits for an executor to run its job, so no call can grant it; test/work/worker_pool.cpp tests
// it. The handlers of the jobs are operations that do not complete by themselves, see
// task_group.hpp; a job that has not started is withdrawn by cancelling its async_run. Both end a
// job at once, on any thread, so a grant is decided before grant() returns. The executor of the
// pools tracks no outstanding work, because jobs are work, also where a property expects none.
#pragma once

#include "contract/subjects/task_group.hpp"

#include <turnstile/work/worker_pool.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

namespace contract {

template <class Threading>
struct pool_subject
    : subject_base<turnstile::basic_worker_pool<int, void, asio::any_io_executor, Threading>> {
    using base =
        subject_base<turnstile::basic_worker_pool<int, void, asio::any_io_executor, Threading>>;
    using job_operation = parked_operation<void(error_code)>;
    // The first three expect that a wait is outstanding work, and the last one that a post needs no
    // memory.
    static constexpr std::array<std::string_view, 4> exempt_from{
        "pending_waits_keep_run_alive", "every_type_is_honoured_and_none_is_not",
        "takes_a_handler_that_can_only_be_dispatched_to", "a_coroutine_gets_it_or_an_exception"};

    pool_subject(const asio::any_io_executor& executor, std::size_t places)
        : pool_subject(
              executor, places,
              asio::use_service<parking_service>(asio::query(executor, asio::execution::context))
                  .make())
    {
    }
    pool_subject(pool_subject&&) = delete;
    ~pool_subject()
    {
        if (this->object)
            destroy();
    }

    // A job that withdraw() ends.
    void add_job()
    {
        signals.emplace_back();
        this->object->async_run(
            1, asio::bind_cancellation_slot(signals.back().slot(), [](error_code) {}));
    }
    void withdraw()
    {
        signals.front().emit(asio::cancellation_type::terminal);
        signals.pop_front();
    }
    void destroy()
    {
        jobs->drop_all();
        while (!signals.empty())
            withdraw();
        this->object.reset();
    }

    std::shared_ptr<parked_children> jobs;
    std::deque<asio::cancellation_signal> signals;

private:
    pool_subject(const asio::any_io_executor& executor, std::size_t places,
                 std::shared_ptr<parked_children> parked)
        : base(untracked_executor(executor),
               turnstile::worker_pool_options<int>{.workers = 2, .capacity = places},
               [parked](int&) { return job_operation{parked}; }),
          jobs(std::move(parked))
    {
    }
};

// A grant withdraws a job of a full pool that is paused. One property needs more grants than the
// pool has jobs.
template <class Threading>
struct pool_submit : pool_subject<Threading> {
    using base = pool_subject<Threading>;
    static constexpr std::array<std::string_view, 5> exempt_from{
        base::exempt_from[0], base::exempt_from[1], base::exempt_from[2], base::exempt_from[3],
        "many_waiters_need_no_deep_recursion"};
    static constexpr std::size_t capacity = 5;
    static constexpr std::size_t places = 200;

    explicit pool_submit(const asio::any_io_executor& executor) : base(executor, places)
    {
        this->object->pause();
        for (std::size_t i = 0; i != places; ++i)
            this->add_job();
    }
    ~pool_submit()
    {
        if (this->object)
            destroy();
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_submit(2, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_submit(2); }
    bool try_op() { return this->object->try_submit(2); }
    void grant() { this->withdraw(); }
    std::size_t available() const { return places - this->object->stats().queued; }
    void consume() {}
    // The jobs that were submitted are left.
    void destroy()
    {
        while (!this->signals.empty())
            this->withdraw();
        if (this->object->stats().queued != 0)
            this->object->async_shutdown(turnstile::shutdown_mode::discard, [](error_code) {});
        this->object.reset();
    }
};

// A grant ends the only job.
template <class Threading>
struct pool_idle : pool_subject<Threading> {
    using base = pool_subject<Threading>;
    static constexpr bool is_broadcast = true;

    explicit pool_idle(const asio::any_io_executor& executor) : base(executor, turnstile::unbounded)
    {
        this->object->pause();
        this->add_job();
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_idle(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_idle(); }
    void grant()
    {
        if (!this->signals.empty())
            this->withdraw();
    }
    std::size_t available() const
    {
        const auto stats = this->object->stats();
        return stats.running + stats.queued == 0 ? 1 : 0;
    }
    void consume() { BOOST_TEST(available() == 1U); }
};

template <class Threading>
struct pool_shutdown : pool_idle<Threading> {
    using pool_idle<Threading>::pool_idle;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_shutdown(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_shutdown(); }
    void grant()
    {
        this->jobs->drop_all();
        pool_idle<Threading>::grant();
    }
};

using worker_pool_subjects = std::tuple<pool_submit<thread_safe>, pool_submit<strand_confined>,
                                        pool_idle<thread_safe>, pool_idle<strand_confined>,
                                        pool_shutdown<thread_safe>, pool_shutdown<strand_confined>>;

} // namespace contract
