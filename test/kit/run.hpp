// SPDX-License-Identifier: BSL-1.0
// Running contexts to the end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace kit {

namespace asio = boost::asio;

// Runs until there is no more work; a wait that nobody ends would hang here.
inline std::size_t run(asio::io_context& io)
{
    io.restart();
    return io.run();
}

// Runs whatever is ready, and says whether waits are still pending.
inline bool poll_leaves_work(asio::io_context& io)
{
    io.restart();
    io.poll();
    return !io.stopped();
}

// A context that must have run out of work by the end of the test.
class drained_context : public asio::io_context {
public:
    using asio::io_context::io_context;
    ~drained_context()
    {
        restart();
        poll();
        BOOST_TEST(stopped(), "work is left on the context at the end of the test");
    }
};

} // namespace kit
