// SPDX-License-Identifier: BSL-1.0
// Outstanding work on an execution context: the context's run() does not return while one of these
// objects holds it. work_guard is for the executor of an object, whose type is one of a few;
// wait_state holds one while it has waiters. executor_work is for an executor of any type, and
// holds the executor as well; handler_route has one for a handler on a foreign executor.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

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

} // namespace turnstile::inline v0_1::detail
