// SPDX-License-Identifier: BSL-1.0
// Contexts that several threads run, and a process that has had a second thread.
#pragma once

#include <boost/asio/io_context.hpp>

#include <thread>
#include <vector>

namespace bench {

// Runs the context on so many threads, this one included, until it is out of work.
inline void run_on_threads(boost::asio::io_context& context, int threads)
{
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i)
        others.emplace_back([&] { context.run(); });
    context.run();
}

} // namespace bench
