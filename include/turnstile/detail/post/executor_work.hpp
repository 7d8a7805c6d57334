// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/prefer.hpp>

#include <type_traits>

namespace turnstile::inline v0_1::detail {

// An executor, and work on its context for as long as this lives. An executor_work_guard
// takes a strand of any_io_executor for one of the old kind, and does not compile.
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
    std::decay_t<decltype(asio::prefer(std::declval<const Executor&>(),
                                       asio::execution::outstanding_work.tracked))>
        work_;
};

} // namespace turnstile::inline v0_1::detail
