// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/bulkhead.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::completion;
using kit::manual_clock;
using turnstile::bulkhead_event;
using turnstile::bulkhead_options;
using turnstile::call_outcome;
using turnstile::errc;
using turnstile::error_code;
using turnstile::nanoseconds;

template <class Threading>
using bulkhead_of = turnstile::basic_bulkhead<asio::any_io_executor, Threading, manual_clock>;

static_assert(!std::is_move_constructible_v<turnstile::bulkhead>);
static_assert(std::is_nothrow_move_constructible_v<turnstile::bulkhead::permit_type>);
static_assert(!std::is_copy_constructible_v<turnstile::bulkhead::permit_type>);

template <class Threading>
struct fixture {
    using permit = typename bulkhead_of<Threading>::permit_type;

    explicit fixture(const bulkhead_options& options) : bulkhead(io, options) {}

    // Keeps the acquired permits.
    void acquire(const completion& c) { bulkhead.async_acquire(keep(c)); }
    auto keep(const completion& c)
    {
        return c.handler([this](permit p) { held.push_back(std::move(p)); });
    }
    void fill()
    {
        while (auto p = bulkhead.try_acquire())
            held.push_back(std::move(p));
    }
    void release_one() { held.erase(held.begin()); }

    kit::drained_context io;
    bulkhead_of<Threading> bulkhead;
    std::vector<permit> held;
};

BOOST_AUTO_TEST_SUITE(bulkhead)

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_options_are_refused, P, kit::policies)
{
    asio::io_context io;
    const auto refused = [&](const bulkhead_options& options) {
        try {
            bulkhead_of<P> b(io, options);
        } catch (const turnstile::system_error& e) {
            return e.code() == errc::invalid_argument;
        }
        return false;
    };
    BOOST_TEST(!refused({}));
    BOOST_TEST(refused({.limit = 0}));
    BOOST_TEST(refused({.limit = std::numeric_limits<std::uint64_t>::max()}));
    BOOST_TEST(refused({.limit = turnstile::limit_bound}));
    BOOST_TEST(!refused({.limit = turnstile::limit_bound - 1}));
    constexpr std::uint64_t high = std::uint64_t(1) << 62;
    BOOST_TEST(refused({.adaptive = turnstile::aimd_options{.minimum = high, .maximum = high}}));
    BOOST_TEST(refused({.adaptive = turnstile::gradient_options{.maximum = 2 * high}}));
    BOOST_TEST(refused({.max_wait = -1ns}));
    BOOST_TEST(refused({.adaptive = turnstile::aimd_options{.backoff = 2}}));
    BOOST_TEST(refused({.adaptive = turnstile::gradient_options{.minimum = 0}}));
    BOOST_TEST(!refused({.max_waiters = 0, .max_wait = 0ns}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_more_than_the_limit_are_inside, P, kit::policies)
{
    fixture<P> f({.limit = 3});
    f.fill();
    BOOST_TEST(f.held.size() == 3U);
    BOOST_TEST(f.bulkhead.stats().in_flight == 3U);
    std::vector<completion> waiting(3);
    for (auto& c : waiting)
        f.acquire(c);
    BOOST_TEST(f.bulkhead.stats().waiting == 3U);
    f.release_one();
    f.io.poll();
    BOOST_TEST(waiting[0].succeeded());
    BOOST_TEST(!waiting[1].done());
    BOOST_TEST(!f.bulkhead.try_acquire()); // others wait
    f.held.clear();
    kit::run(f.io);
    BOOST_TEST(waiting[1].before(waiting[2]));
    f.held.clear();
    BOOST_TEST(f.bulkhead.stats().in_flight == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(it_says_how_many_wait, P, kit::policies)
{
    fixture<P> f({.limit = 1});
    f.fill();
    BOOST_TEST(f.bulkhead.waiting() == 0U);
    completion first;
    completion second;
    f.acquire(first);
    f.acquire(second);
    BOOST_TEST(f.bulkhead.waiting() == 2U);
    BOOST_TEST(f.bulkhead.stats().waiting == 2U);
    f.release_one();
    BOOST_TEST(f.bulkhead.waiting() == 1U);
    kit::poll_leaves_work(f.io);
    f.release_one();
    kit::run(f.io);
    BOOST_TEST(f.bulkhead.waiting() == 0U);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failed_try_says_why, P, kit::policies)
{
    fixture<P> f({.limit = 1});
    error_code ec = errc::closed;
    auto permit = f.bulkhead.try_acquire(ec);
    BOOST_TEST(static_cast<bool>(permit));
    BOOST_TEST(!ec);
    BOOST_TEST(!f.bulkhead.try_acquire(ec));
    BOOST_TEST(ec == errc::rejected);
    permit.success();
    BOOST_TEST(!permit);
    BOOST_TEST(static_cast<bool>(f.bulkhead.try_acquire(ec)));
    BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_too_many_is_rejected, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_waiters = 2});
    f.fill();
    std::vector<completion> calls(4);
    for (auto& c : calls)
        f.acquire(c);
    f.io.poll();
    BOOST_TEST(!calls[0].done());
    BOOST_TEST(!calls[1].done());
    BOOST_TEST((calls[2].error() == errc::rejected));
    BOOST_TEST((calls[3].error() == errc::rejected));
    f.release_one();
    f.io.poll();
    BOOST_TEST(calls[0].succeeded());
    completion late;
    f.acquire(late); // there is room in the queue again
    f.held.clear();
    BOOST_TEST(kit::poll_leaves_work(f.io));
    f.held.clear();
    kit::run(f.io);
    BOOST_TEST(late.succeeded());
    BOOST_TEST(f.bulkhead.stats().rejected == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_a_queue_no_call_waits, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_waiters = 0});
    completion first;
    completion second;
    f.acquire(first);
    f.acquire(second);
    kit::run(f.io);
    BOOST_TEST(first.succeeded());
    BOOST_TEST((second.error() == errc::rejected));
    f.held.clear();
    BOOST_TEST(bool(f.bulkhead.try_acquire()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_waiter_makes_room_in_the_queue, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_waiters = 1});
    f.fill();
    asio::cancellation_signal signal;
    completion cancelled;
    completion next;
    f.bulkhead.async_acquire(asio::bind_cancellation_slot(signal.slot(), f.keep(cancelled)));
    signal.emit(asio::cancellation_type::total);
    f.acquire(next);
    f.held.clear();
    kit::run(f.io);
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(next.succeeded());
}

// ----------------------------------------------------------------------- waiting time ----

BOOST_AUTO_TEST_CASE_TEMPLATE(no_call_waits_longer_than_allowed, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_wait = 100ms});
    f.fill();
    completion first;
    completion second;
    f.acquire(first);
    manual_clock::advance(f.io, 60ms);
    f.acquire(second);
    manual_clock::advance(f.io, 40ms - 1ns);
    BOOST_TEST(!first.done());
    manual_clock::advance(f.io, 1ns);
    BOOST_TEST((first.error() == errc::timed_out));
    BOOST_TEST(!second.done());
    manual_clock::advance(f.io, 60ms - 1ns);
    BOOST_TEST(!second.done());
    manual_clock::advance(f.io, 1ns);
    BOOST_TEST((second.error() == errc::timed_out));
    BOOST_TEST(f.bulkhead.stats().timed_out == 2U);
    f.held.clear();
    BOOST_TEST(bool(f.bulkhead.try_acquire())); // the waiters have consumed nothing
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_admitted_in_time_does_not_time_out, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_wait = 100ms});
    f.fill();
    completion first;
    completion second;
    f.acquire(first);
    f.acquire(second);
    manual_clock::advance(f.io, 99ms);
    f.release_one();
    manual_clock::advance(f.io,
                          1ms); // granted before the deadline, although its handler has not run
    BOOST_TEST(first.succeeded());
    BOOST_TEST((second.error() == errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_timer_is_no_work_without_waiters, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_wait = 1h});
    f.fill();
    completion served;
    f.acquire(served);
    f.io.poll();
    f.release_one();
    kit::run(f.io); // would hang on the timer
    BOOST_TEST(served.succeeded());

    asio::cancellation_signal signal;
    completion cancelled;
    f.bulkhead.async_acquire(asio::bind_cancellation_slot(signal.slot(), f.keep(cancelled)));
    signal.emit(asio::cancellation_type::total);
    kit::run(f.io);
    BOOST_TEST(cancelled.aborted());

    completion by_resize;
    f.acquire(by_resize);
    f.bulkhead.resize(2);
    kit::run(f.io);
    BOOST_TEST(by_resize.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_time_to_wait_means_none, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_wait = 0ns});
    f.fill();
    completion c;
    f.acquire(c);
    kit::run(f.io);
    BOOST_TEST((c.error() == errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_clock_that_goes_back_keeps_the_order, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_wait = 100ms});
    f.fill();
    completion first;
    completion second;
    f.acquire(first);
    manual_clock::shift(-1h);
    f.acquire(second);
    manual_clock::advance(f.io, 1h + 100ms);
    BOOST_TEST((first.error() == errc::timed_out));
    BOOST_TEST((second.error() == errc::timed_out));
    BOOST_TEST(first.before(second));
}

// ---------------------------------------------------------------------------- resize ----

BOOST_AUTO_TEST_CASE_TEMPLATE(it_can_be_resized_while_in_use, P, kit::policies)
{
    fixture<P> f({.limit = 2});
    std::string log;
    f.bulkhead.add_listener([&](const bulkhead_event& c) {
        log += std::to_string(c.from) + ">" + std::to_string(c.to) + " ";
    });
    f.fill();
    std::vector<completion> waiting(3);
    for (auto& c : waiting)
        f.acquire(c);
    f.bulkhead.resize(4);
    f.io.poll();
    BOOST_TEST(waiting[1].succeeded());
    BOOST_TEST(!waiting[2].done());
    f.bulkhead.resize(1);
    BOOST_TEST(f.bulkhead.stats().in_flight == 4U);
    for (int i = 0; i != 3; ++i)
        f.release_one();
    kit::poll_leaves_work(f.io);
    BOOST_TEST(!waiting[2].done());
    f.release_one();
    kit::run(f.io);
    BOOST_TEST(waiting[2].succeeded());
    f.bulkhead.resize(1); // no change
    BOOST_TEST(log == "2>4 4>1 ");

    error_code ec;
    f.bulkhead.resize(0, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW(f.bulkhead.resize(std::numeric_limits<std::uint64_t>::max()),
                      turnstile::system_error);
    BOOST_TEST(f.bulkhead.limit() == 1U);
}

// ----------------------------------------------------------------------------- calls ----

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_wait_their_turn_and_results_pass_unchanged, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> b(io, {.limit = 2});
    int running = 0;
    int most = 0;
    int sum = 0;
    const auto work = [&](int n) -> asio::awaitable<int> {
        most = std::max(most, ++running);
        co_await asio::post(asio::use_awaitable);
        --running;
        co_return n;
    };
    for (int i = 1; i <= 10; ++i)
        b.async_call([&, i] { return work(i); },
                     [&](std::exception_ptr e, int n) {
                         BOOST_TEST(!e);
                         sum += n;
                     });
    kit::run(io);
    BOOST_TEST(sum == 55);
    BOOST_TEST(most == 2);
    BOOST_TEST(b.stats().in_flight == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(refused_calls_are_not_made, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> b(io, {.limit = 1, .max_waiters = 1, .max_wait = 10ms});
    auto held = b.try_acquire();
    int started = 0;
    const auto work = [&]() -> asio::awaitable<void> {
        ++started;
        co_return;
    };
    std::vector<std::string> log;
    const auto note = [&](std::exception_ptr e) {
        log.push_back(e ? turnstile::failure(e).code().message() : "done");
    };
    b.async_call(work, note); // waits
    b.async_call(work, note); // does not fit
    io.poll();
    manual_clock::advance(io, 10ms);
    held.release();
    b.async_call(work, note);
    kit::run(io);
    BOOST_TEST(log == (std::vector<std::string>{
                          turnstile::make_error_code(errc::rejected).message(),
                          turnstile::make_error_code(errc::timed_out).message(), "done"}),
               boost::test_tools::per_element());
    BOOST_TEST(started == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_can_be_cancelled_while_it_waits_and_while_it_runs, P,
                              kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> b(io, {.limit = 1});
    asio::steady_timer never(io, asio::steady_timer::time_point::max());
    asio::cancellation_signal signals[2];
    completion runs;
    completion waits;
    b.async_call(never.async_wait(asio::deferred),
                 asio::bind_cancellation_slot(signals[0].slot(), runs.handler([] {})));
    b.async_call(never.async_wait(asio::deferred),
                 asio::bind_cancellation_slot(signals[1].slot(), waits.handler([] {})));
    BOOST_TEST(b.stats().waiting == 1U);
    signals[1].emit(asio::cancellation_type::total);
    kit::poll_leaves_work(io);
    BOOST_TEST(waits.aborted());
    BOOST_TEST(!runs.done());
    signals[0].emit(asio::cancellation_type::total);
    kit::run(io);
    BOOST_TEST(runs.aborted());
    BOOST_TEST(bool(b.try_acquire()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_while_starting_gives_the_place_back, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> b(io, {.limit = 1});
    const auto broken = asio::async_initiate<const asio::deferred_t, void(error_code)>(
        [](auto) { throw std::runtime_error("cannot start"); }, asio::deferred);
    completion at_once;
    completion later;
    auto held = b.try_acquire();
    b.async_call(broken, later.handler([] {}));
    held.release();
    kit::run(io);
    b.async_call(broken, at_once.handler([] {}));
    kit::run(io);
    BOOST_TEST((later.error() == errc::operation_failed));
    BOOST_TEST((at_once.error() == errc::operation_failed));
    BOOST_TEST(b.stats().in_flight == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_outlive_the_bulkhead, P, kit::policies)
{
    kit::drained_context io;
    auto b = std::make_unique<bulkhead_of<P>>(io, bulkhead_options{.limit = 1});
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    completion runs;
    completion waits;
    b->async_call(timer.async_wait(asio::deferred), runs.handler([] {}));
    b->async_call(timer.async_wait(asio::deferred), waits.handler([] {}));
    b.reset();
    kit::poll_leaves_work(io);
    BOOST_TEST(waits.aborted());
    BOOST_TEST(!runs.done());
    timer.cancel();
    kit::run(io);
    BOOST_TEST(runs.aborted());
}

BOOST_AUTO_TEST_CASE(a_bulkhead_is_a_stage)
{
    const auto coroutine = []() -> asio::awaitable<int> { co_return 1; };
    using op = decltype(std::declval<asio::steady_timer&>().async_wait(asio::deferred));
    static_assert(turnstile::stage_for<turnstile::bulkhead, op>);
    static_assert(turnstile::stage_for<turnstile::local::bulkhead, op>);
    static_assert(turnstile::stage_for<turnstile::bulkhead, decltype(coroutine)>);
    BOOST_TEST(true);
}

// -------------------------------------------------------------------- adaptive limits ----

BOOST_AUTO_TEST_CASE_TEMPLATE(an_adaptive_limit_follows_the_calls, P, kit::policies)
{
    fixture<P> f({.limit = 10, .adaptive = turnstile::aimd_options{.maximum = 12, .backoff = 0.5}});
    std::vector<std::uint64_t> limits;
    f.bulkhead.add_listener([&](const bulkhead_event& c) { limits.push_back(c.to); });
    for (int round = 0; round != 8; ++round) {
        f.fill();
        manual_clock::shift(1ms);
        for (auto& permit : f.held)
            permit.success();
        f.held.clear();
    }
    BOOST_TEST(f.bulkhead.limit() == 12U);
    f.fill();
    manual_clock::shift(1ms);
    f.held.front().failure();
    BOOST_TEST(f.bulkhead.limit() == 6U);
    f.held.back().ignore();
    f.held.clear();
    BOOST_TEST(f.bulkhead.stats().in_flight == 0U);
    BOOST_TEST(f.bulkhead.stats().failures == 1U);
    BOOST_TEST(limits.size() >= 3U);
    BOOST_TEST(limits[0] == 11U);
    BOOST_TEST(limits[1] == 12U);
    BOOST_TEST(limits[2] == 6U);
    error_code ec;
    f.bulkhead.resize(5, ec);
    BOOST_TEST((ec == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_adaptive_limit_that_grows_admits_waiters, P, kit::policies)
{
    fixture<P> f({.limit = 1, .adaptive = turnstile::aimd_options{}});
    f.fill();
    completion first;
    completion second;
    f.acquire(first);
    f.acquire(second);
    f.held[0].success(); // the limit has grown to two
    kit::run(f.io);
    BOOST_TEST(f.bulkhead.limit() == 2U);
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_adaptive_limit_does_not_learn_without_a_report, P, kit::policies)
{
    fixture<P> f({.limit = 1, .adaptive = turnstile::aimd_options{}});
    f.fill();
    manual_clock::shift(1ms);
    f.held[0].release();
    BOOST_TEST(!f.held[0]);
    BOOST_TEST(f.bulkhead.limit() == 1U);
    f.held.clear();
    f.fill();
    BOOST_TEST(f.held.size() == 1U); // the place was given back
    manual_clock::shift(1ms);
    f.held.clear(); // as does the destructor
    BOOST_TEST(f.bulkhead.limit() == 1U);
    f.fill();
    manual_clock::shift(1ms);
    f.held[0].success();
    BOOST_TEST(f.bulkhead.limit() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_adaptive_limit_starts_within_its_bounds, P, kit::policies)
{
    fixture<P> f({.limit = 100, .adaptive = turnstile::gradient_options{.maximum = 5}});
    BOOST_TEST(f.bulkhead.limit() == 5U);
    f.fill();
    BOOST_TEST(f.held.size() == 5U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(failed_calls_lower_an_adaptive_limit, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_options options{.limit = 8, .adaptive = turnstile::aimd_options{.backoff = 0.5}};
    options.classify = [](const turnstile::failure& e) {
        return e.code() == asio::error::eof ? call_outcome::ignored : call_outcome::failure;
    };
    bulkhead_of<P> b(io, options);
    const auto call = [&](error_code ec) {
        b.async_call(
            [ec](auto token) {
                return asio::async_initiate<decltype(token), void(error_code)>(
                    [](auto handler, error_code e) { handler(e); }, token, ec);
            },
            [](error_code) {});
    };
    call(asio::error::eof);
    call({});
    BOOST_TEST(b.limit() == 8U);
    call(asio::error::connection_reset);
    BOOST_TEST(b.limit() == 4U);
    b.async_call(
        [](auto token) {
            return asio::async_initiate<decltype(token), void(error_code, int)>(
                [](auto handler) { handler(error_code(), 503); }, token);
        },
        [](error_code, int status) {
            return status == 503 ? call_outcome::failure : call_outcome::success;
        },
        [](error_code, int) {});
    BOOST_TEST(b.stats().failures == 2U);
}

// A classifier is not mistaken for a handler.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_rule_needs_no_token, P, kit::policies)
{
    kit::drained_context io;
    bulkhead_of<P> b(io, {.limit = 8, .adaptive = turnstile::aimd_options{.backoff = 0.5}});
    const auto call = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto handler) { handler(error_code()); }, token);
    };
    const auto rule = [](const error_code&) { return call_outcome::failure; };
    asio::co_spawn(
        io, [&]() -> asio::awaitable<void> { co_await b.async_call(call, rule); }, asio::detached);
    kit::run(io);
    BOOST_TEST(b.limit() == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_that_outlives_the_bulkhead_calls_no_classifier, P,
                              kit::policies)
{
    asio::io_context io;
    bool gone = false;
    bulkhead_options options{.adaptive = turnstile::aimd_options{}};
    options.classify = [&](const turnstile::failure&) {
        BOOST_TEST(!gone);
        return call_outcome::failure;
    };
    auto b = std::make_unique<bulkhead_of<P>>(io, options);
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    completion c;
    b->async_call(timer.async_wait(asio::deferred), c.handler([] {}));
    b.reset();
    gone = true;
    timer.cancel();
    kit::run(io);
    BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_that_is_refused_gets_a_rejection, P, kit::policies)
{
    fixture<P> f({.limit = 1, .max_waiters = 1, .max_wait = 1s});
    f.fill();
    std::vector<error_code> codes;
    const auto note = [&](std::exception_ptr e) {
        try {
            std::rethrow_exception(e);
        } catch (const turnstile::rejection& r) {
            codes.push_back(r.code());
            BOOST_TEST((r.retry_after() == nanoseconds::max()));
        }
    };
    for (int i = 0; i != 2; ++i)
        f.bulkhead.async_call([]() -> asio::awaitable<void> { co_return; }, note);
    manual_clock::advance(f.io, 1s);
    kit::run(f.io);
    BOOST_TEST_REQUIRE(codes.size() == 2U);
    BOOST_TEST((codes[0] == errc::rejected));
    BOOST_TEST((codes[1] == errc::timed_out));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_may_call_and_end_the_bulkhead, P, kit::policies)
{
    asio::io_context io;
    auto b = std::make_unique<bulkhead_of<P>>(io, bulkhead_options{.limit = 1});
    std::string log;
    b->add_listener([&](const bulkhead_event& c) {
        log += "(";
        if (c.to < 3)
            b->resize(c.to + 1);
        else
            b.reset();
        log += ")";
    });
    b->resize(2);
    BOOST_TEST(log == "()()");
    BOOST_TEST(!b);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
