// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/run.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/detail/call/deadline_service.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using turnstile::errc;
using turnstile::nanoseconds;

// A clock whose timer counts how often it is set and cancelled.
struct counted_clock : kit::clock_types<counted_clock> {
    static time_point now() noexcept { return time_point(time); }
    static inline duration time = 1h;
};

struct counted_timer : kit::scripted_timer {
    using kit::scripted_timer::scripted_timer;

    void expires_at(counted_clock::time_point when)
    {
        kit::scripted_timer::expires_at(kit::scripted_clock::time_point(when.time_since_epoch()));
    }
    template <class Handler>
    void async_wait(Handler handler)
    {
        ++sets;
        kit::scripted_timer::async_wait(std::move(handler));
    }
    void cancel()
    {
        ++cancellations;
        kit::scripted_timer::cancel();
    }

    static inline int sets = 0;
    static inline int cancellations = 0;
};

} // namespace

template <>
struct turnstile::detail::deadline_timer<counted_clock> {
    using type = counted_timer;
};

namespace {

// A deadline of a test, which records when it arrives.
template <class Clock>
struct limit final : turnstile::detail::deadline_entry {
    using service_type = turnstile::detail::deadline_service<Clock>;
    using arrival = turnstile::detail::deadline_scheduler::arrival;

    limit(asio::io_context& context, std::vector<int>& arrivals, int n)
        : deadline_entry(&run), io(&context), service(&asio::use_service<service_type>(context)),
          log(&arrivals), number(n)
    {
    }
    ~limit() = default;

    bool start(nanoseconds when) { return service->start(*this, when); }
    bool stop()
    {
        const auto stopped = service->stop(*this);
        if (stopped.needs_look)
            service->look_again(turnstile::detail::posting_executor(io->get_executor()));
        return stopped.was_waiting;
    }

    bool post() noexcept override
    {
        return !refuses_posts &&
               turnstile::detail::posting_executor(io->get_executor()).post(*this);
    }
    static void run(turnstile::detail::intrusive_task& task, turnstile::detail::task_action action)
    {
        auto& self = static_cast<limit&>(task);
        if (action == turnstile::detail::task_action::destroy) {
            ++self.drops;
            return;
        }
        if (self.before_arrival)
            self.before_arrival();
        if (self.service->arrive(self) == arrival::expired)
            self.log->push_back(self.number);
    }

    asio::io_context* io;
    service_type* service;
    std::vector<int>* log;
    int number;
    int drops = 0;
    bool refuses_posts = false;
    std::function<void()> before_arrival;
};

using scripted_limit = limit<kit::scripted_clock>;

nanoseconds now() { return turnstile::detail::now_on<kit::scripted_clock>(); }

BOOST_AUTO_TEST_SUITE(deadline_service_)

BOOST_AUTO_TEST_CASE(deadlines_arrive_in_the_order_of_their_times)
{
    kit::drained_context io;
    std::vector<int> log;
    scripted_limit a(io, log, 1), b(io, log, 2), c(io, log, 3), same(io, log, 4);
    BOOST_TEST(a.start(now() + 3s));
    BOOST_TEST(b.start(now() + 1s));
    BOOST_TEST(c.start(now() + 2s));
    BOOST_TEST(same.start(now() + 2s));
    kit::scripted_clock::advance(999ms);
    kit::run(io);
    BOOST_TEST(log.empty());
    kit::scripted_clock::advance(1ms);
    kit::run(io);
    BOOST_TEST((log == std::vector{2}));
    kit::scripted_clock::advance(10s);
    kit::run(io);
    BOOST_TEST((log == std::vector{2, 3, 4, 1}));
}

BOOST_AUTO_TEST_CASE(a_stopped_deadline_does_not_arrive)
{
    kit::drained_context io;
    std::vector<int> log;
    scripted_limit a(io, log, 1), b(io, log, 2);
    a.start(now() + 1s);
    b.start(now() + 2s);
    BOOST_TEST(a.stop());
    BOOST_TEST(!a.stop());
    kit::scripted_clock::advance(2s);
    kit::run(io);
    BOOST_TEST((log == std::vector{2}));
    BOOST_TEST(a.service->size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_deadline_is_stopped_or_restarted_after_it_has_fired)
{
    kit::drained_context io;
    std::vector<int> log;
    scripted_limit a(io, log, 1), b(io, log, 2);
    a.start(now() + 1s);
    b.start(now() + 1s);
    kit::scripted_clock::advance(1s); // both are posted
    BOOST_TEST(!a.stop());
    BOOST_TEST(!b.start(now() + 1s));
    kit::run(io);
    BOOST_TEST(log.empty());
    BOOST_TEST(a.start(now() + 5s)); // idle again
    kit::scripted_clock::advance(1s);
    kit::run(io);
    BOOST_TEST((log == std::vector{2}));
    a.stop();
    kit::run(io);
    kit::scripted_clock::advance(0s);
}

BOOST_AUTO_TEST_CASE(a_recalled_deadline_arrives_soon_and_has_not_expired)
{
    kit::drained_context io;
    std::vector<int> log;
    scripted_limit a(io, log, 1);
    bool arrived = false;
    a.before_arrival = [&] { arrived = true; };
    BOOST_TEST(!a.service->recall(a));
    a.start(now() + 1h);
    BOOST_TEST(a.service->recall(a));
    kit::scripted_clock::advance(0s); // the wait was cancelled
    kit::run(io);
    BOOST_TEST(arrived);
    BOOST_TEST(log.empty());
}

BOOST_AUTO_TEST_CASE(a_deadline_that_cannot_be_posted_is_tried_again)
{
    kit::drained_context io;
    std::vector<int> log;
    scripted_limit a(io, log, 1);
    a.refuses_posts = true;
    a.start(now() + 1s);
    kit::scripted_clock::advance(1s);
    a.refuses_posts = false;
    kit::run(io);
    BOOST_TEST(log.empty());
    kit::scripted_clock::advance(1ms);
    kit::run(io);
    BOOST_TEST((log == std::vector{1}));
}

BOOST_AUTO_TEST_CASE(one_limit_after_another_leaves_the_timer_alone)
{
    asio::io_context io;
    std::vector<int> log;
    limit<counted_clock> a(io, log, 1);
    const nanoseconds start = turnstile::detail::now_on<counted_clock>();
    counted_timer::sets = counted_timer::cancellations = 0;
    asio::post(io, [&] {
        for (int i = 0; i != 1000; ++i) {
            a.start(start + 1h + i * 1ms);
            a.stop();
        }
        a.start(start + 2h);
    });
    io.run();
    BOOST_TEST(counted_timer::sets == 1);
    BOOST_TEST(counted_timer::cancellations == 0);
    a.start(start + 30min); // earlier
    BOOST_TEST(counted_timer::cancellations == 1);
    a.stop();
    io.restart();
    io.run();
    BOOST_TEST(counted_timer::sets == 1);
}

// With Asio's timer, which is outstanding work while it is set.
BOOST_AUTO_TEST_CASE(run_returns_when_no_deadline_is_left)
{
    asio::io_context io;
    turnstile::event never(io), soon(io);
    completion first, second;
    never.async_wait(turnstile::timeout_after(1ns, first.handler([] {})));
    soon.async_wait(turnstile::timeout_after(1000h, second.handler([] {})));
    asio::post(io, [&] { soon.set(); });
    io.run();
    BOOST_TEST(first.error() == errc::timed_out);
    BOOST_TEST(second.succeeded());
    BOOST_TEST(kit::run(io) == 0U);
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_drops_waiting_and_fired_deadlines)
{
    std::vector<int> log;
    auto io = std::make_unique<asio::io_context>();
    scripted_limit a(*io, log, 1), b(*io, log, 2), idle(*io, log, 3);
    a.start(now() + 1h);
    b.start(now() + 1s);
    kit::scripted_clock::advance(1s);
    io.reset();
    BOOST_TEST(a.drops == 1);
    BOOST_TEST(b.drops == 1);
    BOOST_TEST(idle.drops == 0);
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_deadlines_start_stop_and_arrive_in_any_order)
{
    constexpr int count = 100'000;
    kit::drained_context io;
    std::vector<int> log;
    std::vector<std::unique_ptr<scripted_limit>> limits;
    const auto second_of = [](int i) { return std::chrono::seconds(1 + i * 7919L % count); };
    for (int i = 0; i != count; ++i) {
        limits.push_back(std::make_unique<scripted_limit>(io, log, i));
        limits.back()->start(now() + second_of(i));
    }
    for (int i = 0; i != count; i += 2)
        BOOST_TEST_REQUIRE(limits[static_cast<std::size_t>(i)]->stop());
    BOOST_TEST(limits[0]->service->size() == count / 2U);
    kit::scripted_clock::advance(std::chrono::seconds(count + 1));
    kit::run(io);
    BOOST_TEST_REQUIRE(log.size() == count / 2U);
    BOOST_TEST(std::is_sorted(log.begin(), log.end(),
                              [&](int a, int b) { return second_of(a) < second_of(b); }));
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_limited_operations_time_out)
{
    constexpr std::size_t count = 100'000;
    kit::drained_context io;
    turnstile::event never(io);
    std::size_t timed_out = 0;
    for (std::size_t i = 0; i != count; ++i)
        turnstile::async_with_timeout<kit::scripted_clock>(
            io.get_executor(), 1s, [&](auto token) { return never.async_wait(std::move(token)); },
            [&](turnstile::error_code ec) { timed_out += ec == errc::timed_out ? 1 : 0; });
    auto& service = asio::use_service<turnstile::detail::deadline_service<kit::scripted_clock>>(io);
    BOOST_TEST(service.size() == count);
    kit::scripted_clock::advance(1s);
    kit::run(io);
    BOOST_TEST(timed_out == count);
    BOOST_TEST(service.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
