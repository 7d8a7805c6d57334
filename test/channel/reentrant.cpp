// SPDX-License-Identifier: BSL-1.0

// Values that use or destroy their channel while they are destroyed. The address sanitizer checks
// that the channel is not used after that; a value that is destroyed under the lock would deadlock.
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace {

namespace asio = boost::asio;
using turnstile::close_mode;
using turnstile::errc;
using turnstile::error_code;
using turnstile::overflow;

// Calls a function when it is destroyed.
class last_words {
public:
    last_words() noexcept = default;
    explicit last_words(std::function<void()> f)
        : function_(std::make_unique<std::function<void()>>(std::move(f)))
    {
    }
    last_words(last_words&&) noexcept = default;
    last_words& operator=(last_words&& other) noexcept
    {
        std::swap(function_, other.function_);
        return *this;
    }
    ~last_words()
    {
        if (const auto f = std::move(function_))
            (*f)();
    }

private:
    std::unique_ptr<std::function<void()>> function_;
};

template <class P>
using queue_of = turnstile::basic_queue<last_words, asio::any_io_executor, P>;
template <class P>
using watch_of = turnstile::basic_watch<last_words, asio::any_io_executor, P>;
template <class P>
using broadcast_of = turnstile::basic_broadcast<last_words, asio::any_io_executor, P>;
template <class P>
using oneshot_of = turnstile::basic_oneshot<last_words, asio::any_io_executor, P>;

// An object, and a value that destroys it.
template <class Object>
struct owned {
    template <class... Args>
    explicit owned(Args&&... args)
        : object(
              std::make_shared<std::optional<Object>>(std::in_place, std::forward<Args>(args)...))
    {
    }
    last_words destroyer() const
    {
        return last_words([o = object] { o->reset(); });
    }
    bool is_destroyed() const { return !object->has_value(); }
    Object& operator*() const { return **object; }
    Object* operator->() const { return &**object; }

    std::shared_ptr<std::optional<Object>> object;
};

const auto ignore = [](auto&&...) {};

BOOST_AUTO_TEST_SUITE(reentrant_values)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_dropped_item_may_push_and_pop, P, kit::policies)
{
    kit::drained_context io;
    queue_of<P> q(io, 1, overflow::drop_oldest);
    int words = 0;
    const auto push_another = [&] {
        ++words;
        BOOST_TEST(q.try_push(last_words([&] { ++words; })));
    };
    BOOST_TEST(q.try_push(last_words(push_another)));
    BOOST_TEST(q.try_push(last_words()), "drops the first");
    BOOST_TEST(words == 1);
    BOOST_TEST(q.try_push(last_words(push_another)));
    BOOST_TEST(words == 2);
    q.async_push(last_words(), ignore);
    kit::run(io);
    BOOST_TEST(words == 3);
    BOOST_TEST(q.size() == 1U);
    q.close(close_mode::discard);
    BOOST_TEST(words == 4);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_discarded_item_may_close_push_and_join, P, kit::policies)
{
    kit::drained_context io;
    queue_of<P> q(io, 2);
    bool joined = false;
    error_code ec;
    BOOST_TEST(q.try_push(last_words([&] {
        q.close(close_mode::discard);
        BOOST_TEST(!q.try_push(last_words(), ec));
        q.async_join([&](error_code) { joined = true; });
    })));
    q.close(close_mode::discard);
    BOOST_TEST((ec == errc::closed));
    kit::run(io);
    BOOST_TEST(joined);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_item_that_is_dropped_may_destroy_the_queue, P, kit::policies)
{
    for (const bool waits : {false, true}) {
        kit::drained_context io;
        owned<queue_of<P>> q(io, 1, overflow::drop_oldest);
        BOOST_TEST(q->try_push(q.destroyer()));
        std::optional<error_code> pushed;
        if (waits) {
            q->async_push(last_words(), [&](error_code ec) { pushed = ec; });
            kit::run(io);
            BOOST_TEST((pushed && !*pushed), "it had entered");
        } else {
            BOOST_TEST(q->try_push(last_words()));
        }
        BOOST_TEST(q.is_destroyed());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_item_that_is_discarded_may_destroy_the_queue, P, kit::policies)
{
    kit::drained_context io;
    owned<queue_of<P>> q(io, 2);
    BOOST_TEST(q->try_push(q.destroyer()));
    BOOST_TEST(q->try_push(q.destroyer()));
    q->close(close_mode::discard);
    BOOST_TEST(q.is_destroyed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_item_of_a_cancelled_push_may_destroy_the_queue, P, kit::policies)
{
    for (const bool has_entered : {false, true}) {
        kit::drained_context io;
        owned<queue_of<P>> q(io, has_entered ? 1U : 0U);
        asio::cancellation_signal signal;
        std::optional<error_code> pushed;
        std::optional<error_code> behind;
        q->async_push(q.destroyer(), asio::bind_cancellation_slot(
                                         signal.slot(), [&](error_code ec) { pushed = ec; }));
        q->async_push(last_words(), [&](error_code ec) { behind = ec; });
        signal.emit(asio::cancellation_type::total);
        kit::run(io);
        BOOST_TEST((pushed == asio::error::operation_aborted));
        BOOST_TEST((behind == asio::error::operation_aborted));
        BOOST_TEST(q.is_destroyed());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_item_of_a_refused_push_may_destroy_the_queue, P, kit::policies)
{
    kit::drained_context io;
    owned<queue_of<P>> q(io, 0, overflow::reject);
    std::optional<error_code> pushed;
    q->async_push(q.destroyer(), [&](error_code ec) { pushed = ec; });
    kit::run(io);
    BOOST_TEST((pushed == errc::rejected));
    BOOST_TEST(q.is_destroyed());
    owned<queue_of<P>> other(io, 0, overflow::reject);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto destroyer = other.destroyer();
            auto [ec] = co_await other->async_push(std::move(destroyer),
                                                   asio::as_tuple(asio::use_awaitable));
            pushed = ec;
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((pushed == errc::rejected));
    BOOST_TEST(other.is_destroyed());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_item_may_hold_a_reservation_of_its_own_queue, P, kit::policies)
{
    kit::drained_context io;
    auto place = std::make_shared<typename queue_of<P>::reservation_type>();
    error_code ec;
    bool pushed = false;
    {
        queue_of<P> q(io, 2);
        *place = q.try_reserve();
        BOOST_TEST(q.try_push(last_words([&, place] { place->push(last_words(), ec); })));
        q.async_push(last_words(), [&](error_code) { pushed = true; });
    }
    BOOST_TEST((ec == errc::closed));
    place.reset();
    kit::run(io);
    BOOST_TEST(pushed);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_popped_item_may_destroy_the_queue, P, kit::policies)
{
    kit::drained_context io;
    owned<queue_of<P>> q(io, 3);
    BOOST_TEST(q->try_push(q.destroyer()));
    BOOST_TEST(q->try_push(last_words()));
    std::optional<error_code> behind;
    q->async_pop([](error_code ec, last_words) { BOOST_TEST(!ec); });
    q->async_pop_n(2, [](error_code, auto) {});
    q->async_pop([&](error_code ec, last_words) { behind = ec; });
    kit::run(io);
    BOOST_TEST(q.is_destroyed());
    BOOST_TEST((behind == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_replaced_value_may_use_or_destroy_the_watch, P, kit::policies)
{
    kit::drained_context io;
    owned<watch_of<P>> w(io);
    int changes = 0;
    w->set(last_words([&] { changes += static_cast<int>(w->set(last_words())); }));
    w->set(last_words()); // version 3, whose predecessor sets version 4
    BOOST_TEST(changes == 4);
    BOOST_TEST(w->version() == 4U);
    std::optional<error_code> waited;
    w->async_wait_changed(w->version() + 1, [](error_code, auto) {});
    w->async_wait_for([](const last_words&) { return false; },
                      [&](error_code ec, auto) { waited = ec; });
    w->set(w.destroyer());
    w->set(last_words());
    BOOST_TEST(w.is_destroyed());
    kit::run(io);
    BOOST_TEST((waited == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_displaced_value_may_use_or_destroy_the_broadcast, P, kit::policies)
{
    kit::drained_context io;
    owned<broadcast_of<P>> b(io, 1);
    std::optional receiver(b->subscribe());
    int sent = 0;
    b->send(last_words([&] {
        b->send(last_words());
        ++sent;
    }));
    b->send(last_words());
    BOOST_TEST(sent == 1);
    BOOST_TEST(receiver->available() == 1U);
    BOOST_TEST(receiver->try_receive().missed() == 2U);
    b->send(b.destroyer());
    b->send(last_words());
    BOOST_TEST(b.is_destroyed());
    error_code ec;
    BOOST_TEST(!receiver->try_receive(ec));
    BOOST_TEST((ec == errc::closed));

    // A value in the ring may own the last receiver, and a receiver the last reference to a value.
    owned<broadcast_of<P>> other(io, 1);
    receiver = other->subscribe();
    other->send(last_words([&] { receiver.reset(); }));
    other.object->reset();
    BOOST_TEST(!receiver);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_value_may_own_the_ends_of_its_oneshot, P, kit::policies)
{
    for (const bool receiver_first : {false, true}) {
        kit::drained_context io;
        oneshot_of<P> o(io);
        auto sender = std::make_shared<decltype(o.sender)>(std::move(o.sender));
        std::optional receiver(std::move(o.receiver));
        bool gone = false;
        sender->async_wait_receiver_gone([&](error_code) { gone = true; });
        auto& sending = *sender;
        sending.send(last_words([s = std::move(sender)]() mutable { s.reset(); }));
        if (!receiver_first)
            receiver->async_receive([&](error_code ec, last_words) { BOOST_TEST(!ec); });
        else
            receiver.reset();
        kit::run(io);
        BOOST_TEST(gone);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
