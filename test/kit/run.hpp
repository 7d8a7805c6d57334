// SPDX-License-Identifier: BSL-1.0
// Runs contexts until they are out of work.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace kit {

namespace asio = boost::asio;

// Runs until there is no outstanding work. Hangs if a wait does not complete.
inline std::size_t run(asio::io_context& io)
{
    io.restart();
    return io.run();
}

// Runs the ready handlers, and returns whether work is still outstanding.
inline bool poll_leaves_work(asio::io_context& io)
{
    io.restart();
    io.poll();
    return !io.stopped();
}

// A context that must be out of work at the end of the test.
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
