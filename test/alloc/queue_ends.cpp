// SPDX-License-Identifier: BSL-1.0
// The allocations of the counted ends of a queue, and what remains if they fail.
#include "alloc/heap.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <new>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using turnstile::errc;
using turnstile::error_code;

using queues = std::tuple<turnstile::queue<int>, turnstile::local::queue<int>>;

BOOST_AUTO_TEST_SUITE(queue_end_allocations)

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_do_not_allocate, Queue, queues)
{
    asio::io_context io;
    Queue q(io, 4);
    auto first_sender = q.sender(); // keep the queue open
    auto first_receiver = q.receiver();
    const auto round = [&] {
        auto sender = q.sender();
        auto receiver = first_receiver;
        first_sender = sender;
        first_receiver = q.receiver();
        BOOST_TEST_REQUIRE(sender.try_push(1));
        auto places = sender.try_reserve(2);
        BOOST_TEST_REQUIRE(places.size() == 2U);
        places.push(2);
        places.release();
        BOOST_TEST_REQUIRE(receiver.try_pop().has_value());
        BOOST_TEST_REQUIRE(receiver.try_pop().has_value());
    };
    round();
    const std::size_t before = heap::allocations();
    for (int i = 0; i != 100; ++i)
        round();
    BOOST_TEST(heap::allocations() == before);
}

// An end that is released while no memory is left still ends the queue.
BOOST_AUTO_TEST_CASE(the_last_sender_is_noticed_without_memory)
{
    for (const auto how : {heap::failure::once, heap::failure::for_ever}) {
        for (std::size_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 100U);
            kit::drained_context io;
            turnstile::queue<int> q(io, 1);
            std::vector<int> pushed;
            pushed.reserve(2);
            heap::failing failing(k, how);
            auto sender = q.sender();
            for (int i = 0; i != 2; ++i) {
                try {
                    sender.async_push(i, [](error_code ec) { BOOST_TEST(!ec); });
                    pushed.push_back(i);
                } catch (const std::bad_alloc&) {
                }
            }
            sender.release();
            failing.stop();
            std::vector<int> popped;
            error_code ec;
            while (auto item = q.try_pop(ec))
                popped.push_back(*item);
            kit::run(io);
            BOOST_TEST(popped == pushed, boost::test_tools::per_element());
            BOOST_TEST((ec == errc::closed));
            if (!failing.happened())
                break;
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
