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
struct told {
    turnstile::detail::listener_list<int, Threading> list;
    std::string log;

    listener_id add(char name)
    {
        return list.add([this, name](int event) { log += name + std::to_string(event) + ' '; });
    }
    void tell(int event)
    {
        list.publish(event);
        list.dispatch();
    }
};

BOOST_AUTO_TEST_SUITE(listener_list)

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_are_told_in_the_order_they_were_added, P, kit::policies)
{
    told<P> t;
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

BOOST_AUTO_TEST_CASE_TEMPLATE(a_removed_listener_is_told_nothing_more, P, kit::policies)
{
    told<P> t;
    const auto a = t.add('a');
    t.add('b');
    t.list.publish(1);
    BOOST_TEST(t.list.remove(a));
    BOOST_TEST(!t.list.remove(a));
    t.list.dispatch();
    t.tell(2);
    BOOST_TEST(t.log == "b1 b2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_listener_is_not_told_of_the_past, P, kit::policies)
{
    told<P> t;
    t.add('a');
    t.list.publish(1);
    t.add('b');
    t.list.publish(2);
    t.list.dispatch();
    BOOST_TEST(t.log == "a1 a2 b2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(listeners_may_come_and_go_inside_one, P, kit::policies)
{
    told<P> t;
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
    t.tell(1);
    BOOST_TEST(alive.use_count() == 1);
    t.tell(2);
    BOOST_TEST(t.log == "a1 c2 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_happens_inside_a_listener_is_told_afterwards, P, kit::policies)
{
    told<P> t;
    t.list.add([&](int event) {
        t.log += "(" + std::to_string(event);
        if (event < 3)
            t.tell(event + 1);
        t.log += ")";
    });
    t.add('b');
    t.tell(1);
    BOOST_TEST(t.log == "(1)b1 (2)b2 (3)b3 ");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_throws_does_not_keep_the_others_from_it, P, kit::policies)
{
    told<P> t;
    t.list.add([](int) { throw std::runtime_error("listener"); });
    t.add('b');
    t.tell(1);
    t.tell(2);
    BOOST_TEST(t.log == "b1 b2 ");
}

// As if others did it all the time: whoever tells is not kept doing so.
BOOST_AUTO_TEST_CASE_TEMPLATE(while_one_tells_only_so_much_is_added, P, kit::policies)
{
    using list_type = turnstile::detail::listener_list<int, P>;
    list_type list;
    std::size_t told = 0;
    list.add([&](int event) {
        BOOST_TEST(std::size_t(event) == told); // in order
        if (++told > 2 * list_type::max_added)
            return;
        list.publish(event + 1);
        list.dispatch();
    });
    list.publish(0);
    list.dispatch();
    BOOST_TEST(told == 1 + list_type::max_added);
    BOOST_TEST(list.dropped() == 1U);
    told = 0;
    list.publish(0);
    list.dispatch();
    BOOST_TEST(told == 1 + list_type::max_added); // the next may tell as much again
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_newest_of_too_many_are_dropped_and_counted, P, kit::policies)
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

// One that cannot be copied now and then.
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
    int told = 0;
    list.add([&](const fragile&) { ++told; });
    int copies = 0;
    for (int i = 0; i != 3; ++i) {
        list.publish(fragile(&copies));
        list.dispatch();
    }
    BOOST_TEST(told == 2);
    BOOST_TEST(list.dropped() == 1U);
    BOOST_TEST(copies == 3); // and it is copied once
}

BOOST_AUTO_TEST_CASE_TEMPLATE(clearing_inside_a_listener_ends_it_all, P, kit::policies)
{
    told<P> t;
    t.list.add([&](int) {
        t.log += "a";
        t.list.close();
    });
    t.add('b');
    t.list.publish(1);
    t.list.publish(2);
    t.list.dispatch();
    t.tell(3);
    BOOST_TEST(t.log == "a");
}

// An event may have the last reference to something of the user's, such as a key.
BOOST_AUTO_TEST_CASE_TEMPLATE(an_event_whose_end_uses_the_list_is_destroyed_without_a_lock, P,
                              kit::policies)
{
    struct key;
    using list_type = turnstile::detail::listener_list<std::shared_ptr<key>, P>;
    struct key {
        list_type& list;
        int& destroyed;
        ~key()
        {
            ++destroyed;
            list.remove(list.add([](const auto&) {})); // for ever, if it waits for its own thread
        }
    };
    enum class end { told, closed_before, closed_by_the_listener, removed };
    for (const end how :
         {end::told, end::closed_before, end::closed_by_the_listener, end::removed}) {
        list_type list;
        int destroyed = 0;
        int told = 0;
        const auto id = list.add([&](const auto& event) {
            BOOST_TEST(event.use_count() == 1);
            ++told;
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
        BOOST_TEST(told == (how == end::told ? 2 : how == end::closed_by_the_listener ? 1 : 0));
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
