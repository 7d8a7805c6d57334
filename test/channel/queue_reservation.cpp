// SPDX-License-Identifier: BSL-1.0
#include "channel/operation.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue_reservation.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>

namespace {

using namespace channels;

BOOST_AUTO_TEST_SUITE(queue_reservation)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_is_filled_or_given_back, Threading, kit::policies)
{
    using place_type = typename queue_of<Threading>::reservation_type;
    kit::drained_context io;
    queue_of<Threading> q(io, 2);
    place_type first = q.try_reserve();
    place_type second = q.try_reserve();
    BOOST_TEST(static_cast<bool>(first));
    BOOST_TEST(!q.try_reserve());
    BOOST_TEST(!q.try_push(9));
    operation push;
    operation pop;
    q.async_push(3, push.ended());
    q.async_pop(pop.popped()); // both sides wait, and the pop makes room for the push
    kit::run(io);
    BOOST_TEST(push.succeeded());
    BOOST_TEST((pop.values == numbers{3}));

    first.push(1);
    BOOST_TEST(!first);
    error_code ec;
    first.push(7, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW(first.push(7), system_error);
    operation waits;
    q.async_push(4, waits.ended());
    second.release();
    kit::run(io);
    BOOST_TEST(waits.succeeded());
    BOOST_TEST((drain(q) == numbers{1, 4}));
}

BOOST_AUTO_TEST_CASE(a_reservation_outlasts_close_but_not_a_discarding_one)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 2);
    auto first = q.try_reserve();
    auto second = q.try_reserve();
    operation pops[2];
    for (auto& op : pops)
        q.async_pop(op.popped());
    q.close();
    kit::poll_leaves_work(io);
    BOOST_TEST(!pops[0].done);
    first.push(1);
    kit::poll_leaves_work(io);
    BOOST_TEST((pops[0].values == numbers{1}));
    BOOST_TEST(!pops[1].done);
    q.close(close_mode::discard);
    error_code ec;
    second.push(2, ec);
    BOOST_TEST((ec == errc::closed));
    BOOST_TEST(static_cast<bool>(second));
    kit::poll_leaves_work(io);
    BOOST_TEST(pops[1].failed_with(errc::closed), "nothing can come, though a place is held");
    second.release();
    kit::run(io);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_may_outlive_its_queue, Threading, kit::policies)
{
    kit::drained_context io;
    std::optional<queue_of<Threading>> q;
    q.emplace(io.get_executor(), 2U);
    auto kept = q->try_reserve();
    auto dropped = q->try_reserve();
    q.reset();
    error_code ec;
    kept.push(1, ec);
    BOOST_TEST((ec == errc::closed));
}

BOOST_AUTO_TEST_CASE(an_item_that_a_pop_waits_for_is_not_dropped)
{
    // Two places are reserved for two waiting pops, then one of the pops is cancelled.
    for (const bool fills : {true, false}) {
        kit::drained_context io;
        turnstile::queue<int> q(io, 0, overflow::drop_oldest);
        std::vector<operation> pops(2);
        for (auto& op : pops)
            q.async_pop(op.popped());
        auto first = q.try_reserve();
        auto second = q.try_reserve();
        pops[0].cancel();
        if (fills)
            first.push(1);
        else
            BOOST_TEST(q.try_push(1));
        kit::run(io);
        BOOST_TEST((pops[1].values == numbers{1}));
        BOOST_TEST(q.dropped() == 0U);
        second.push(2); // no pop is left to take it
        BOOST_TEST(q.dropped() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(reserving_without_capacity_waits_for_a_pop)
{
    kit::drained_context io;
    turnstile::queue<int> q(io, 0);
    turnstile::queue<int>::reservation_type place;
    q.async_reserve([&](error_code, auto granted) { place = std::move(granted); });
    kit::poll_leaves_work(io);
    BOOST_TEST(!place);
    BOOST_TEST(!q.try_pop());
    operation pop;
    q.async_pop(pop.popped());
    kit::poll_leaves_work(io);
    BOOST_TEST_REQUIRE(static_cast<bool>(place));
    place.push(1);
    kit::run(io);
    BOOST_TEST((pop.values == numbers{1}));
}

BOOST_AUTO_TEST_CASE(a_push_that_throws_has_not_moved_from_its_value)
{
    asio::io_context io;
    turnstile::queue<std::string> q(io, 2);
    auto place = q.try_reserve();
    q.try_reserve().push("copied or moved");
    q.close(turnstile::close_mode::discard);
    std::string value = "still here";
    BOOST_CHECK_THROW(place.push(std::move(value)), turnstile::system_error);
    BOOST_TEST(value == "still here");
    BOOST_CHECK_THROW(place.push(value), turnstile::system_error);
    BOOST_TEST(value == "still here");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(several_places_are_granted_together_and_in_turn, Threading,
                              kit::policies)
{
    using place_type = typename queue_of<Threading>::reservation_type;
    kit::drained_context io;
    queue_of<Threading> q(io, 3);
    BOOST_TEST(q.free() == 3U);
    fill(q, {1, 2});
    BOOST_TEST(q.free() == 1U);
    place_type places;
    q.async_reserve(3, [&](error_code ec, place_type granted) {
        BOOST_TEST(!ec);
        places = std::move(granted);
    });
    operation push;
    q.async_push(6, push.ended());
    kit::poll_leaves_work(io);
    BOOST_TEST(!push.done, "it does not overtake the reservation");
    BOOST_TEST(!q.try_push(9));
    BOOST_TEST((q.try_pop() == 1));
    kit::poll_leaves_work(io);
    BOOST_TEST(places.size() == 0U, "all places or none");
    BOOST_TEST((q.try_pop() == 2));
    kit::poll_leaves_work(io);
    BOOST_TEST_REQUIRE(places.size() == 3U);
    BOOST_TEST(q.free() == 0U);
    BOOST_TEST(!push.done);
    places.push(3);
    places.push(4);
    BOOST_TEST(places.size() == 1U);
    BOOST_TEST(static_cast<bool>(places));
    place_type moved = std::move(places);
    BOOST_TEST(places.size() == 0U); // NOLINT(bugprone-use-after-move)
    BOOST_TEST(!places);
    BOOST_TEST(moved.size() == 1U);
    moved.release(); // the push takes the place
    BOOST_TEST(moved.size() == 0U);
    kit::run(io);
    BOOST_TEST(push.succeeded());
    BOOST_TEST(q.free() == 0U);
    BOOST_TEST((drain(q) == numbers{3, 4, 6}));
    BOOST_TEST(q.free() == 3U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_number_of_places_is_checked, Threading, kit::policies)
{
    kit::drained_context io;
    const auto error_of = [&](auto& q, std::size_t n) {
        error_code ec;
        BOOST_TEST(!q.try_reserve(n, ec));
        error_code async_error;
        q.async_reserve(n, [&](error_code e, auto place) {
            async_error = e;
            BOOST_TEST(!place);
        });
        kit::run(io);
        BOOST_TEST((async_error == ec));
        BOOST_TEST(q.free() == q.capacity());
        return ec;
    };
    queue_of<Threading> q(io, 2);
    BOOST_TEST((error_of(q, 0) == errc::invalid_argument));
    BOOST_TEST((error_of(q, 3) == errc::too_large));
    queue_of<Threading> rendezvous(io, 0);
    BOOST_TEST((error_of(rendezvous, 2) == errc::too_large));
    queue_of<Threading> endless(io, turnstile::unbounded);
    BOOST_TEST((error_of(endless, 0) == errc::invalid_argument));
    BOOST_TEST((error_of(endless, static_cast<std::size_t>(-1)) == errc::too_large));
    auto many = endless.try_reserve(1000);
    BOOST_TEST(many.size() == 1000U);
    BOOST_TEST(endless.free() == turnstile::unbounded);

    queue_of<Threading> rejects(io, 2, overflow::reject);
    BOOST_TEST(rejects.try_push(1));
    error_code ec;
    BOOST_TEST(!rejects.try_reserve(2, ec));
    BOOST_TEST((ec == errc::rejected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_large_reservation_grants_what_it_blocked, Threading,
                              kit::policies)
{
    for (const bool was_granted : {false, true}) {
        kit::drained_context io;
        queue_of<Threading> q(io, 3);
        fill(q, {1});
        operation large;
        const auto reserved = [&](error_code ec, auto place) {
            large.done = true;
            large.error = ec;
            BOOST_TEST(place.size() == 0U);
        };
        q.async_reserve(3, asio::bind_cancellation_slot(large.signal.slot(), reserved));
        operation pushes[2];
        q.async_push(2, pushes[0].ended());
        q.async_push(3, pushes[1].ended());
        if (was_granted)
            BOOST_TEST((q.try_pop() == 1));
        large.cancel();
        kit::run(io);
        BOOST_TEST(large.aborted());
        BOOST_TEST(pushes[0].succeeded());
        BOOST_TEST(pushes[1].succeeded());
        BOOST_TEST((drain(q) == (was_granted ? numbers{2, 3} : numbers{1, 2, 3})));
        BOOST_TEST(q.free() == 3U);
    }
}

BOOST_AUTO_TEST_CASE(the_places_of_a_priority_queue_take_priorities)
{
    asio::io_context io;
    turnstile::priority_queue<int> q(io, 3);
    auto places = q.try_reserve(3);
    places.push(2, 2);
    places.push(1, 1);
    places = {};
    BOOST_TEST(q.free() == 1U);
    BOOST_TEST((drain(q) == numbers{1, 2}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
