// SPDX-License-Identifier: BSL-1.0

// A channel, its handles, the coroutines that hold them or wait, and their context are destroyed in
// every order. The address sanitizer checks that none of them is used after that.
#include "kit/abandoned_context.hpp"
#include "kit/policies.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace {

namespace asio = boost::asio;

// Each value holds a reference, so that the test sees a leaked value.
using life = std::shared_ptr<int>;

// The handler of a suspended coroutine, and with it the coroutine's frame.
struct parking {
    std::shared_ptr<void> frame;

    asio::awaitable<void> async_park()
    {
        return asio::async_initiate<const asio::use_awaitable_t<>, void()>(
            [this](auto handler) {
                frame = std::make_shared<decltype(handler)>(std::move(handler));
            },
            asio::use_awaitable);
    }
};

asio::awaitable<void> wait_for_ever()
{
    asio::steady_timer timer(co_await asio::this_coro::executor,
                             asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

// A coroutine that holds a handle, either parked or until its context is destroyed.
template <class Handle>
asio::awaitable<void> hold([[maybe_unused]] Handle handle, parking* place)
{
    if (place)
        co_await place->async_park();
    else
        co_await wait_for_ever();
}

// --- The subjects: each makes a channel, takes a handle from it, and waits at it.

template <class Queue>
struct queue_case {
    queue_case(asio::io_context& io, const life& l) : queue(io, 3)
    {
        if constexpr (requires { queue.try_push(l, 0); })
            BOOST_TEST_REQUIRE(static_cast<bool>(queue.try_push(l, 0)));
        else
            BOOST_TEST_REQUIRE(queue.try_push(l));
    }
    auto take() { return queue.try_reserve(); }
    asio::awaitable<void> wait()
    {
        const auto place = co_await queue.async_reserve();
        co_await wait_for_ever();
    }

    Queue queue;
};

template <class P>
using plain_queue_case = queue_case<turnstile::basic_queue<life, asio::any_io_executor, P>>;
template <class P>
using priority_queue_case = queue_case<
    turnstile::basic_priority_queue<life, int, std::less<int>, asio::any_io_executor, P>>;

template <class P>
struct watch_case {
    watch_case(asio::io_context& io, const life& l) : watch(io, l) {}
    auto take() { return watch.get(); }
    asio::awaitable<void> wait()
    {
        const auto changed = co_await watch.async_wait_changed(watch.version());
        co_await wait_for_ever();
    }

    turnstile::basic_watch<life, asio::any_io_executor, P> watch;
};

template <class P>
struct search_case : watch_case<P> {
    using watch_case<P>::watch_case;
    asio::awaitable<void> wait()
    {
        const auto is_none = [](const life& l) { return !l; };
        const auto found = co_await this->watch.async_wait_for(is_none);
    }
};

template <class P>
struct broadcast_case {
    broadcast_case(asio::io_context& io, const life& l) : value(l), broadcast(io, 2) {}
    auto take()
    {
        auto receiver = broadcast.subscribe();
        broadcast.send(value);
        auto message = receiver.try_receive();
        BOOST_TEST(static_cast<bool>(message));
        broadcast.send(value);
        return std::pair(std::move(receiver), std::move(message));
    }
    asio::awaitable<void> wait()
    {
        auto receiver = broadcast.subscribe();
        const auto message = co_await receiver.async_receive();
        co_await wait_for_ever();
    }

    life value;
    turnstile::basic_broadcast<life, asio::any_io_executor, P> broadcast;
};

// The object keeps the senders; the handles are the receivers.
template <class P>
struct oneshot_case {
    using oneshot = turnstile::basic_oneshot<life, asio::any_io_executor, P>;

    oneshot_case(asio::io_context& io, const life& l) : first(io), second(io)
    {
        first.sender.send(l);
    }
    auto take() { return std::move(std::exchange(taken, true) ? second : first).receiver; }
    asio::awaitable<void> wait()
    {
        co_await second.sender.async_wait_receiver_gone();
        co_await wait_for_ever();
    }

    bool taken = false;
    oneshot first;
    oneshot second;
};

// The object keeps the receivers; the handles are the senders.
template <class P>
struct oneshot_sender_case : oneshot_case<P> {
    using oneshot_case<P>::oneshot_case;
    auto take()
    {
        return std::move(std::exchange(this->taken, true) ? this->second : this->first).sender;
    }
    asio::awaitable<void> wait()
    {
        const auto value = co_await this->second.receiver.async_receive();
        co_await wait_for_ever();
    }
};

enum class part { object, handle, coroutine, context };
using parts = std::array<part, 4>;

// A coroutine cannot outlive its context, so in such an order the context destroys it.
template <class Case>
void destroy_in(const parts& order, bool runs_in_between)
{
    const auto l = std::make_shared<int>(0);
    std::optional<asio::io_context> context(std::in_place);
    auto object = std::make_unique<Case>(*context, l);
    std::optional handle(object->take());
    parking place;
    const auto at = [&](part p) { return std::find(order.begin(), order.end(), p); };
    const bool is_parked = at(part::coroutine) < at(part::context);
    asio::co_spawn(*context, hold(object->take(), is_parked ? &place : nullptr), asio::detached);
    asio::co_spawn(*context, object->wait(), asio::detached);
    context->poll();
    BOOST_TEST((place.frame != nullptr) == is_parked);

    for (const part p : order) {
        if (p == part::object)
            object.reset();
        else if (p == part::handle)
            handle.reset();
        else if (p == part::coroutine)
            place.frame.reset();
        else
            context.reset();
        if (context && runs_in_between) {
            context->restart();
            context->poll();
        }
    }
    BOOST_TEST(l.use_count() == 1, "a value has leaked");
}

template <class Case>
void destroy_in_every_order()
{
    parts order{part::object, part::handle, part::coroutine, part::context};
    do {
        for (const bool runs_in_between : {false, true})
            destroy_in<Case>(order, runs_in_between);
    } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_SUITE(channel_lifetime)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_of_a_queue, P, kit::policies)
{
    destroy_in_every_order<plain_queue_case<P>>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_of_a_priority_queue, P, kit::policies)
{
    destroy_in_every_order<priority_queue_case<P>>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_snapshot_of_a_watch, P, kit::policies)
{
    destroy_in_every_order<watch_case<P>>();
    destroy_in_every_order<search_case<P>>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_of_a_broadcast_and_its_message, P, kit::policies)
{
    destroy_in_every_order<broadcast_case<P>>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_ends_of_a_oneshot, P, kit::policies)
{
    destroy_in_every_order<oneshot_case<P>>();
    destroy_in_every_order<oneshot_sender_case<P>>();
}

// Destroying an object is not a call from the wrong strand.
BOOST_AUTO_TEST_CASE(a_handler_that_owns_a_local_channel_is_destroyed_on_another_thread)
{
    const auto alive = std::make_shared<int>();
    kit::destroy_with_abandoned_context([&](asio::io_context& io) {
        auto queue = std::make_unique<turnstile::local::queue<life>>(io, 1U);
        BOOST_TEST(queue->try_push(life(alive)));
        return queue;
    });
    kit::destroy_with_abandoned_context(
        [](asio::io_context& io) { return std::make_unique<turnstile::local::oneshot<life>>(io); });
    kit::destroy_with_abandoned_context([&](asio::io_context& io) {
        auto broadcast = std::make_unique<turnstile::local::broadcast<life>>(io, 1U);
        auto receiver = broadcast->subscribe();
        broadcast->send(life(alive));
        return std::pair(std::move(broadcast), std::move(receiver));
    });
    BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
