// SPDX-License-Identifier: BSL-1.0
// The operation that the workloads of breakers, bulkheads, timeouts and retries call.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

namespace bench {

// Completes without an error as soon as the scheduler runs the handler that it posts.
struct posted_operation {
    boost::asio::any_io_executor executor;

    template <class Token>
    auto operator()(Token&& token) const
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            initiation{executor}, token);
    }

private:
    struct initiation {
        using executor_type = boost::asio::any_io_executor;
        executor_type executor;

        executor_type get_executor() const noexcept { return executor; }

        template <class Handler>
        void operator()(Handler handler) const
        {
            auto where = boost::asio::get_associated_executor(handler, executor);
            boost::asio::post(where, [h = std::move(handler)]() mutable {
                std::move(h)(boost::system::error_code());
            });
        }
    };
};

} // namespace bench
