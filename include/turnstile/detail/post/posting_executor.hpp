// SPDX-License-Identifier: BSL-1.0
// The executor to which an object posts its completions, with its type erased but for the executors
// that Asio ships: posting_executor looks for these inside an any_io_executor and posts to them
// directly, because type erasure is the largest part of the cost of a post. Every state has one for
// the object's executor, and a waiter on a foreign executor has one for that.
// The file also has the types that hold outstanding work on an executor: work_guard, executor_work.
//
// Invariant: a post to an io_context or a thread_pool neither allocates nor fails, because the
// posted intrusive_task contains the memory for it.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

// Outstanding work on an execution context: the context's run() does not return while one of these
// objects holds it. work_guard is for the executor of an object, whose type is one of a few;
// wait_state holds one while it has waiters. executor_work is for an executor of any type, and
// holds the executor as well; handler_route has one for a handler on a foreign executor.

// An executor that counts as outstanding work while it exists.
template <class Executor>
using tracked_t = std::decay_t<decltype(asio::prefer(std::declval<const Executor&>(),
                                                     asio::execution::outstanding_work.tracked))>;

using io_executor = asio::io_context::executor_type;
using pool_executor = asio::thread_pool::executor_type;

// Outstanding work, or none. A lone waiter takes it up and gives it up each time it waits, so the
// usual type, the executor of an io_context, is kept apart from the variant, which would be visited
// each time.
class work_guard {
public:
    work_guard() noexcept = default;
    work_guard(work_guard&& other) noexcept { take_from(other); }
    work_guard& operator=(work_guard&& other) noexcept
    {
        io_.reset();
        other_.reset();
        take_from(other);
        return *this;
    }

    explicit operator bool() const noexcept { return io_ || other_; }

    // Precondition: it holds no work.
    template <class Tracked>
    void track(Tracked executor)
    {
        if constexpr (std::is_same_v<Tracked, tracked_t<io_executor>>)
            io_.emplace(std::move(executor));
        else
            other_.emplace(std::move(executor));
    }
    work_guard take() noexcept { return std::move(*this); }

private:
    using other_work = std::variant<tracked_t<pool_executor>, tracked_t<asio::any_io_executor>>;

    void take_from(work_guard& from) noexcept
    {
        if (from.io_) [[likely]] {
            io_.emplace(std::move(*from.io_));
            from.io_.reset();
        } else if (from.other_) {
            take_other(from);
        }
    }
    TURNSTILE_COLD void take_other(work_guard& from) noexcept
    {
        other_.emplace(std::move(*from.other_));
        from.other_.reset();
    }

    std::optional<tracked_t<io_executor>> io_;
    std::optional<other_work> other_;
};

// An executor with outstanding work on its context. asio::executor_work_guard does not compile for
// strand<any_io_executor>, so it is used only for executors of the Networking TS.
template <class Executor>
class executor_work {
public:
    explicit executor_work(const Executor& executor) : work_(executor) {}
    Executor get_executor() const noexcept { return work_.get_executor(); }

private:
    asio::executor_work_guard<Executor> work_;
};

template <class Executor>
    requires(asio::execution::is_executor<Executor>::value)
class executor_work<Executor> {
public:
    explicit executor_work(const Executor& executor)
        : executor_(executor),
          work_(asio::prefer(executor, asio::execution::outstanding_work.tracked))
    {
    }
    Executor get_executor() const noexcept { return executor_; }

private:
    Executor executor_;
    tracked_t<Executor> work_;
};

class TURNSTILE_EXPORT posting_executor {
public:
    // No executor: each post fails. A state whose execution context was destroyed has this one.
    posting_executor() noexcept = default;
    posting_executor(const asio::any_io_executor& executor);

    template <class Executor>
        requires(!std::same_as<Executor, posting_executor>)
    explicit posting_executor(const Executor& executor)
        : posting_executor(executor, std::is_constructible<known_executor, const Executor&>())
    {
    }

    // Queues the task; it does not run inside the call. Returns false if the executor has no memory
    // for it, which is possible for strands and for executors that Asio does not ship. The task
    // then remains the caller's.
    bool post(intrusive_task& task) const noexcept;

    // The same with execution::relationship.continuation: the task may run right after the handler
    // that is running.
    bool post_continuation(intrusive_task& task) const noexcept;

    // Takes up outstanding work in an empty guard.
    void track_in(work_guard& work) const;
    work_guard track() const
    {
        work_guard work;
        track_in(work);
        return work;
    }

    // Whether the executor is that of an io_context that has not stopped, or a strand of one, and
    // the calling thread is not running it. False if this cannot be determined.
    bool is_running_elsewhere() const noexcept;

    // Whether the executor is that of an io_context that has stopped, or a strand of one.
    bool has_stopped() const noexcept;

    // Whether `executor` is this executor.
    TURNSTILE_HOT bool is(const asio::any_io_executor& executor) const noexcept
    {
        if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]] {
            const auto* other = executor.target<io_executor>();
            return other && *other == *io;
        }
        return is_other(executor);
    }
    template <class Executor>
    bool is(const Executor& executor) const
    {
        return *this == posting_executor(executor);
    }

    // Whether `executor` is a serial_executor on top of this executor.
    TURNSTILE_COLD bool is_inner_of(const asio::any_io_executor& executor) const noexcept;

    friend bool operator==(const posting_executor& a, const posting_executor& b) noexcept
    {
        return a.executor_ == b.executor_;
    }

private:
    using known_executor =
        std::variant<io_executor, pool_executor, asio::strand<io_executor>,
                     asio::strand<pool_executor>, asio::strand<asio::any_io_executor>>;
    using executor_variant =
        std::variant<std::monostate, io_executor, pool_executor, asio::strand<io_executor>,
                     asio::strand<pool_executor>, asio::strand<asio::any_io_executor>,
                     asio::any_io_executor>;

    template <class Executor>
    posting_executor(const Executor& executor, std::true_type) : executor_(executor)
    {
    }
    template <class Executor>
    posting_executor(const Executor& executor, std::false_type)
        : posting_executor(asio::any_io_executor(executor))
    {
    }

    TURNSTILE_COLD bool is_other(const asio::any_io_executor& executor) const noexcept;

    executor_variant executor_;
};

// An executor that can be posted to. Others, as any_completion_executor, are reached by a dispatch
// from the object's executor.
template <class Executor>
concept postable_executor = std::convertible_to<Executor, asio::any_io_executor>;

} // namespace turnstile::inline v0_1::detail
