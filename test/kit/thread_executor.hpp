// SPDX-License-Identifier: BSL-1.0
// An executor that runs each function on a thread of its own.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

namespace kit {

// execute() returns when the function has returned, as if the posting thread had been preempted.
class thread_executor {
public:
    explicit thread_executor(boost::asio::execution_context& context) noexcept : context_(&context)
    {
    }

    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept
    {
        return *context_;
    }
    static constexpr boost::asio::execution::blocking_t
    query(boost::asio::execution::blocking_t) noexcept
    {
        return boost::asio::execution::blocking.never;
    }
    thread_executor require(boost::asio::execution::blocking_t::never_t) const noexcept
    {
        return *this;
    }
    template <class F>
    void execute(F&& f) const
    {
        std::thread([g = std::make_shared<std::decay_t<F>>(std::forward<F>(f))]() mutable {
            std::move (*g)();
            g.reset();
        }).join();
    }

    friend bool operator==(const thread_executor&, const thread_executor&) noexcept = default;

private:
    boost::asio::execution_context* context_;
};

} // namespace kit
