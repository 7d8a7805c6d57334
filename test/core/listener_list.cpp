#include "kit/policies.hpp"

#include <turnstile/core/detail/listener_list.hpp>

#include <boost/test/unit_test.hpp>

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

BOOST_AUTO_TEST_SUITE_END()

} // namespace
