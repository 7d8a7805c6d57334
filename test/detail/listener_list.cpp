// SPDX-License-Identifier: BSL-1.0
#include "kit/policies.hpp"

#include <turnstile/detail/util/listener_list.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

using turnstile::listener_id;

template <class Threading>
struct recorded_list {
    turnstile::detail::listener_list<int, Threading> list;
    std::string log;

    listener_id add(char name)
    {
        return list.add([this, name](int event) { log += name + std::to_string(event) + ' '; });
    }
    void raise(int event)
    {
        list.publish(event);
        list.dispatch();
    }
};

BOOST_AUTO_TEST_SUITE(listener_list)

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_are_called_in_the_order_of_their_addition, P, kit::policies)
{
    recorded_list<P> t;
    t.add('a');
    t.add('b');
    t.list.publish(1);
    t.list.publish(2);
    BOOST_TEST(t.log == "");
    t.list.dispatch();
    BOOST_TEST(t.log == "a1 b1 a2 b2 ");
    t.list.dispatch();
    BOOST_TEST(t.log == "a1 b1 a2 b2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_removed_listener_is_not_called, P, kit::policies)
{
    recorded_list<P> t;
    const auto a = t.add('a');
    t.add('b');
    t.list.publish(1);
    BOOST_TEST(t.list.remove(a));
    BOOST_TEST(!t.list.remove(a));
    t.list.dispatch();
    t.raise(2);
    BOOST_TEST(t.log == "b1 b2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_listener_is_not_called_for_earlier_events, P, kit::policies)
{
    recorded_list<P> t;
    t.add('a');
    t.list.publish(1);
    t.add('b');
    t.list.publish(2);
    t.list.dispatch();
    BOOST_TEST(t.log == "a1 a2 b2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_may_be_added_and_removed_inside_a_listener, P,
                              kit::policies)
{
    recorded_list<P> t;
    std::optional<listener_id> self;
    std::optional<listener_id> next;
    const auto alive = std::make_shared<int>(0);
    self = t.list.add([&, alive](int event) {
        t.log += "a" + std::to_string(event) + " ";
        t.list.remove(*self);
        t.list.remove(*next);
        t.add('c');
        BOOST_TEST(alive.use_count() == 2); // not destroyed while it runs
    });
    next = t.add('b');
    t.raise(1);
    BOOST_TEST(alive.use_count() == 1);
    t.raise(2);
    BOOST_TEST(t.log == "a1 c2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_raised_inside_a_listener_is_dispatched_afterwards, P,
                              kit::policies)
{
    recorded_list<P> t;
    t.list.add([&](int event) {
        t.log += "(" + std::to_string(event);
        if (event < 3)
            t.raise(event + 1);
        t.log += ")";
    });
    t.add('b');
    t.raise(1);
    BOOST_TEST(t.log == "(1)b1 (2)b2 (3)b3 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_that_throws_does_not_keep_the_others_from_being_called, P,
                              kit::policies)
{
    recorded_list<P> t;
    t.list.add([](int) { throw std::runtime_error("listener"); });
    t.add('b');
    t.raise(1);
    t.raise(2);
    BOOST_TEST(t.log == "b1 b2 ");
}

// Stands for other threads that keep raising events: the dispatching thread must come to an end.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_thread_dispatches_a_bounded_number_of_added_events, P,
                              kit::policies)
{
    using list_type = turnstile::detail::listener_list<int, P>;
    list_type list;
    std::size_t called = 0;
    list.add([&](int event) {
        BOOST_TEST(std::size_t(event) == called); // in order
        if (++called > 2 * list_type::max_added)
            return;
        list.publish(event + 1);
        list.dispatch();
    });
    list.publish(0);
    list.dispatch();
    BOOST_TEST(called == 1 + list_type::max_added);
    BOOST_TEST(list.dropped() == 1U);
    called = 0;
    list.publish(0);
    list.dispatch();
    BOOST_TEST(called == 1 + list_type::max_added); // the next dispatch has the same bound
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_newest_of_too_many_events_are_dropped_and_counted, P,
                              kit::policies)
{
    using list_type = turnstile::detail::listener_list<int, P>;
    list_type list;
    int last = -1;
    list.add([&](int event) { last = event; });
    const int most = list_type::max_queued;
    for (int i = 0; i != most + 3; ++i)
        list.publish(i);
    BOOST_TEST(list.dropped() == 3U);
    BOOST_TEST(list.has_pending_events());
    list.dispatch();
    BOOST_TEST(last == most - 1);
    BOOST_TEST(!list.has_pending_events());
    list.publish(7);
    list.dispatch();
    BOOST_TEST(last == 7);
}

// An event whose first copy throws.
struct fragile {
    explicit fragile(int* c) noexcept : copies(c) {}
    fragile(fragile&&) noexcept = default;
    fragile(const fragile& other) : copies(other.copies)
    {
        if ((*copies)++ == 0)
            throw std::runtime_error("copy");
    }
    int* copies;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_that_cannot_be_copied_is_dropped, P, kit::policies)
{
    turnstile::detail::listener_list<fragile, P> list;
    int called = 0;
    list.add([&](const fragile&) { ++called; });
    int copies = 0;
    for (int i = 0; i != 3; ++i) {
        list.publish(fragile(&copies));
        list.dispatch();
    }
    BOOST_TEST(called == 2);
    BOOST_TEST(list.dropped() == 1U);
    BOOST_TEST(copies == 3); // each event is copied once
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_the_list_inside_a_listener_drops_the_remaining_events, P,
                              kit::policies)
{
    recorded_list<P> t;
    t.list.add([&](int) {
        t.log += "a";
        t.list.close();
    });
    t.add('b');
    t.list.publish(1);
    t.list.publish(2);
    t.list.dispatch();
    t.raise(3);
    BOOST_TEST(t.log == "a");
}

// An event may own the last reference to an object of the user, such as a key.
BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_whose_destructor_uses_the_list_is_destroyed_without_a_lock,
                              P, kit::policies)
{
    struct key;
    using list_type = turnstile::detail::listener_list<std::shared_ptr<key>, P>;
    struct key {
        list_type& list;
        int& destroyed;
        ~key()
        {
            ++destroyed;
            list.remove(list.add([](const auto&) {})); // hangs if the lock is held
        }
    };
    enum class end { dispatched, closed_before, closed_by_the_listener, removed };
    for (const end how :
         {end::dispatched, end::closed_before, end::closed_by_the_listener, end::removed}) {
        list_type list;
        int destroyed = 0;
        int called = 0;
        const auto id = list.add([&](const auto& event) {
            BOOST_TEST(event.use_count() == 1);
            ++called;
            if (how == end::closed_by_the_listener)
                list.close();
        });
        for (int i = 0; i != 2; ++i)
            list.publish(std::shared_ptr<key>(new key{list, destroyed}));
        if (how == end::closed_before)
            list.close();
        if (how == end::removed)
            BOOST_TEST(list.remove(id));
        BOOST_TEST(destroyed == (how == end::closed_before ? 2 : 0));
        list.dispatch();
        BOOST_TEST(destroyed == 2);
        BOOST_TEST(called == (how == end::dispatched               ? 2
                              : how == end::closed_by_the_listener ? 1
                                                                   : 0));
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
