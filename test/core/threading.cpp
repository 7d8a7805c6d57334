#include "kit/run.hpp"

#include <turnstile/core/detail/permit_gate.hpp>
#include <turnstile/core/threading.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <future>
#include <thread>
#include <type_traits>

namespace {

namespace asio = boost::asio;
using turnstile::strand_confined;
using turnstile::thread_safe;

static_assert(std::is_same_v<thread_safe::cell<int>, std::atomic<int>>);
static_assert(!std::is_same_v<strand_confined::cell<int>, std::atomic<int>>);
static_assert(std::is_empty_v<strand_confined::mutex_type>);

BOOST_AUTO_TEST_SUITE(threading)

BOOST_AUTO_TEST_CASE(a_plain_cell_behaves_like_an_atomic)
{
    strand_confined::cell<int> cell(1);
    int expected = 2;
    BOOST_TEST(!cell.compare_exchange_weak(expected, 3));
    BOOST_TEST(expected == 1);
    BOOST_TEST(cell.compare_exchange_weak(expected, 3));
    BOOST_TEST(cell.load() == 3);
    cell.store(4);
    BOOST_TEST(cell.load() == 4);
}

BOOST_AUTO_TEST_CASE(a_call_from_outside_a_running_strand_is_noticed)
{
    asio::io_context io;
    auto strand = asio::make_strand(io);
    turnstile::detail::permit_gate<strand_confined> gate(strand, 1U, 1U);
    BOOST_TEST(!gate.called_from_wrong_strand()); // set-up, before anything runs
    std::promise<bool> wrong_inside;
    std::promise<void> seen;
    std::thread worker([&] {
        asio::post(strand, [&] {
            wrong_inside.set_value(gate.called_from_wrong_strand());
            seen.get_future().wait();
        });
        io.run();
    });
    BOOST_TEST(!wrong_inside.get_future().get());
    BOOST_TEST(gate.called_from_wrong_strand()); // the worker is inside; this thread is not
    seen.set_value();
    worker.join();
    // Once the context has stopped, nothing can be running in the strand.
    BOOST_TEST(!gate.called_from_wrong_strand());
    gate.retire();
}

BOOST_AUTO_TEST_CASE(a_call_where_nothing_can_be_told_is_let_pass)
{
    asio::io_context io;
    turnstile::detail::permit_gate<strand_confined> gate(io.get_executor(), 1U, 1U);
    std::thread([&] { BOOST_TEST(!gate.called_from_wrong_strand()); }).join();
    BOOST_TEST(!gate.called_from_wrong_strand());
    gate.retire();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
