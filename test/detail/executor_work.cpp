// SPDX-License-Identifier: BSL-1.0
#include "kit/run.hpp"

#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

namespace {

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(executor_work)

template <class Executor>
void keeps_running(asio::io_context& io, const Executor& executor)
{
    {
        const turnstile::detail::executor_work<Executor> work(executor);
        BOOST_TEST(kit::poll_leaves_work(io));
        BOOST_TEST((work.get_executor() == executor));
    }
    BOOST_TEST(!kit::poll_leaves_work(io));
}

BOOST_AUTO_TEST_CASE(a_context_keeps_running_while_there_is_work)
{
    kit::drained_context io;
    const asio::any_io_executor erased = io.get_executor();
    keeps_running(io, io.get_executor());
    keeps_running(io, erased);
    keeps_running(io, asio::make_strand(io));
    keeps_running(io, asio::make_strand(erased));
    keeps_running(io, asio::io_context::strand(io));
}

BOOST_AUTO_TEST_CASE(a_handler_may_be_bound_to_a_strand_of_a_type_erased_executor)
{
    kit::drained_context io;
    turnstile::event e(io);
    auto strand = asio::make_strand(asio::any_io_executor(io.get_executor()));
    bool in_strand = false;
    e.async_wait(asio::bind_executor(
        strand, [&](turnstile::error_code) { in_strand = strand.running_in_this_thread(); }));
    e.set();
    kit::run(io);
    BOOST_TEST(in_strand);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
