// SPDX-License-Identifier: BSL-1.0
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/seed.hpp"

#include <turnstile/sync/barrier.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using turnstile::barrier_options;
using turnstile::cancelled_party;
using turnstile::errc;
using turnstile::error_code;

template <class Threading>
using barrier_of = turnstile::basic_barrier<asio::any_io_executor, Threading>;

static_assert(!std::is_move_constructible_v<turnstile::barrier>);

// One party: the result of its wait, and a signal that cancels it.
struct party {
    completion result;
    std::size_t index = 99;
    asio::cancellation_signal signal;

    template <class Barrier>
    void arrive_at(Barrier& b)
    {
        b.async_arrive_and_wait(asio::bind_cancellation_slot(
            signal.slot(), result.handler([this](std::size_t i) { index = i; })));
    }
    void cancel() { signal.emit(asio::cancellation_type::total); }
    bool is_broken() const { return result.done() && result.error() == errc::broken; }
};

template <class Barrier>
void arrive_all(Barrier& b, std::vector<party>& parties)
{
    for (auto& p : parties)
        p.arrive_at(b);
}

BOOST_AUTO_TEST_SUITE(barrier)

BOOST_AUTO_TEST_CASE_TEMPLATE(no_parties_are_refused, P, kit::policies)
{
    asio::io_context io;
    BOOST_CHECK_EXCEPTION(barrier_of<P>(io, 0), turnstile::system_error,
                          [](const auto& e) { return e.code() == errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_single_party_never_waits, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 1);
    for (int round = 0; round != 3; ++round) {
        party only;
        only.arrive_at(b);
        BOOST_TEST(!only.result.done(), "completed inside the initiating function");
        kit::run(io);
        BOOST_TEST(only.result.succeeded());
        BOOST_TEST(only.index == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(all_waits_complete_when_the_last_party_has_arrived, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    std::vector<party> all(3);
    for (std::size_t i = 0; i != 2; ++i) {
        all[i].arrive_at(b);
        BOOST_TEST(b.waiting() == i + 1);
        BOOST_TEST(kit::poll_leaves_work(io));
        BOOST_TEST(!all[0].result.done());
    }
    all[2].arrive_at(b);
    BOOST_TEST(b.waiting() == 0U);
    kit::run(io);
    for (std::size_t i = 0; i != all.size(); ++i) {
        BOOST_TEST(all[i].result.succeeded());
        BOOST_TEST(all[i].index == i);
    }
    BOOST_TEST(b.parties() == 3U);
    BOOST_TEST(!b.broken());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(every_round_has_each_index_once, P, kit::policies)
{
    kit::drained_context io;
    constexpr std::size_t parties = 10;
    constexpr int rounds = 50;
    barrier_of<P> b(io, parties);
    std::vector<std::vector<int>> seen(rounds, std::vector<int>(parties));
    std::vector<int> round_of(parties);
    const auto task = [&](std::size_t id) -> asio::awaitable<void> {
        for (int round = 0; round != rounds; ++round) {
            round_of[id] = round;
            const std::size_t index = co_await b.async_arrive_and_wait();
            ++seen[static_cast<std::size_t>(round)][index];
            // No party is more than one round ahead of another, or behind this round.
            for (int other : round_of)
                BOOST_TEST_REQUIRE((other == round || other == round + 1));
            if (id % 3 == 0)
                co_await asio::post(asio::use_awaitable);
        }
    };
    for (std::size_t i = 0; i != parties; ++i)
        asio::co_spawn(io, task(i), asio::detached);
    kit::run(io);
    for (const auto& round : seen)
        for (int times : round)
            BOOST_TEST(times == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_arrival_while_a_round_is_delivered_belongs_to_the_next, P,
                              kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 2);
    std::vector<party> first(2);
    std::vector<party> second(2);
    arrive_all(b, first); // complete, but not yet delivered
    second[0].arrive_at(b);
    BOOST_TEST(b.waiting() == 1U);
    kit::poll_leaves_work(io);
    BOOST_TEST(first[0].result.succeeded());
    BOOST_TEST(first[1].result.succeeded());
    BOOST_TEST(!second[0].result.done());
    second[1].arrive_at(b);
    kit::run(io);
    BOOST_TEST(second[0].result.succeeded());
    BOOST_TEST(second[0].index == 0U);
    BOOST_TEST(second[1].index == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_last_coroutine_does_not_suspend, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 2);
    int suspended = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int round = 0; round != 2; ++round) {
                party other;
                other.arrive_at(b);
                bool posted_ran = false;
                asio::post(io, [&] { posted_ran = true; });
                BOOST_TEST(co_await b.async_arrive_and_wait() == 1U);
                suspended += posted_ran ? 1 : 0;
                while (!other.result.done())
                    co_await asio::post(asio::use_awaitable);
                BOOST_TEST(other.result.succeeded());
                BOOST_TEST(other.index == 0U);
            }
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(suspended <= 1); // one, if the coop budget of the thread was used up
}

// ---- Cancelling a party --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancelled_party_has_not_arrived, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    std::vector<party> all(4);
    for (std::size_t i = 0; i != 2; ++i)
        all[i].arrive_at(b);
    all[0].cancel();
    BOOST_TEST(b.waiting() == 1U);
    all[2].arrive_at(b);
    kit::poll_leaves_work(io);
    BOOST_TEST(all[0].result.aborted());
    BOOST_TEST(!all[1].result.done(), "completed while a party was missing");
    all[3].arrive_at(b);
    kit::run(io);
    for (std::size_t i = 1; i != all.size(); ++i) {
        BOOST_TEST(all[i].result.succeeded());
        BOOST_TEST(all[i].index == i - 1); // the indices have no gap
    }
    BOOST_TEST(!b.broken());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(once_the_round_is_complete_cancelling_a_party_concerns_only_itself, P,
                              kit::policies)
{
    for (auto policy : {cancelled_party::withdraws, cancelled_party::breaks_barrier}) {
        for (std::size_t victim : {0U, 1U}) {
            kit::drained_context io;
            barrier_of<P> b(io, 2, {.action = nullptr, .on_cancel = policy});
            std::vector<party> all(2);
            arrive_all(b, all);
            all[victim].cancel();
            kit::run(io);
            BOOST_TEST(all[victim].result.aborted());
            BOOST_TEST(all[1 - victim].result.succeeded());
            BOOST_TEST(!b.broken());
            BOOST_TEST(b.waiting() == 0U);
            std::vector<party> next(2);
            arrive_all(b, next);
            kit::run(io);
            BOOST_TEST(next[0].result.succeeded());
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_a_party_may_break_the_barrier, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 4, {.action = nullptr, .on_cancel = cancelled_party::breaks_barrier});
    std::vector<party> all(4);
    for (std::size_t i = 0; i != 3; ++i)
        all[i].arrive_at(b);
    all[1].cancel();
    BOOST_TEST(b.broken());
    all[3].arrive_at(b);
    kit::run(io);
    BOOST_TEST(all[1].result.aborted());
    for (std::size_t i : {0U, 2U, 3U})
        BOOST_TEST(all[i].is_broken());
    BOOST_TEST(b.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(losing_to_a_timer_withdraws, P, kit::policies)
{
    using namespace asio::experimental::awaitable_operators;
    kit::drained_context io;
    barrier_of<P> b(io, 2);
    bool timed_out = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer due(io, asio::steady_timer::time_point::min());
            const auto first =
                co_await (b.async_arrive_and_wait() || due.async_wait(asio::use_awaitable));
            timed_out = first.index() == 1;
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(timed_out);
    BOOST_TEST(b.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_cannot_be_started_has_not_arrived, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 2);
    kit::allocation_plan plan;
    plan.fail = true;
    const auto fail_to_arrive = [&] {
        completion lost(kit::dropping::is_expected);
        b.async_arrive_and_wait(asio::bind_allocator(kit::failing_allocator<void*>(plan),
                                                     lost.handler([](std::size_t) {})));
    };
    BOOST_CHECK_THROW(fail_to_arrive(), std::bad_alloc);
    BOOST_TEST(b.waiting() == 0U);
    party waits;
    waits.arrive_at(b);
    BOOST_CHECK_THROW(fail_to_arrive(), std::bad_alloc); // it would have completed the round
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!waits.result.done());
    BOOST_TEST(b.waiting() == 1U);
    b.reset();
    kit::run(io);
}

// ---- Dropping, resetting, aborting ----------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_party_that_drops_counts_in_this_round_only, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    std::vector<party> all(2);
    all[0].arrive_at(b);
    b.arrive_and_drop();
    BOOST_TEST(b.parties() == 2U);
    BOOST_TEST(b.waiting() == 1U);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(!all[0].result.done());
    all[1].arrive_at(b);
    kit::run(io);
    BOOST_TEST(all[0].result.succeeded());
    BOOST_TEST(all[1].result.succeeded());
    std::vector<party> next(2);
    arrive_all(b, next);
    kit::run(io);
    BOOST_TEST(next[0].result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(dropping_may_complete_the_round, P, kit::policies)
{
    kit::drained_context io;
    int actions = 0;
    barrier_of<P> b(io, 4, {.action = [&] { ++actions; }});
    std::vector<party> all(2);
    arrive_all(b, all);
    b.arrive_and_drop(2);
    BOOST_TEST(actions == 1);
    BOOST_TEST(b.parties() == 2U);
    kit::run(io);
    BOOST_TEST(all[0].result.succeeded());
    BOOST_TEST(all[1].result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(dropping_too_many_is_an_error_and_changes_nothing, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    party waits;
    waits.arrive_at(b);
    error_code ec;
    b.arrive_and_drop(3, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    b.arrive_and_drop(0, ec);
    BOOST_TEST((ec == errc::invalid_argument));
    BOOST_CHECK_THROW(b.arrive_and_drop(3), turnstile::system_error);
    BOOST_TEST(b.parties() == 3U);
    BOOST_TEST(b.waiting() == 1U);
    BOOST_TEST(!waits.result.done());
    b.arrive_and_drop(2, ec);
    BOOST_TEST(!ec);
    kit::run(io);
    BOOST_TEST(waits.result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(when_all_have_dropped_the_barrier_is_closed, P, kit::policies)
{
    kit::drained_context io;
    int actions = 0;
    barrier_of<P> b(io, 2, {.action = [&] { ++actions; }});
    b.arrive_and_drop();
    b.arrive_and_drop();
    BOOST_TEST(actions == 1); // the last drop completes a round
    BOOST_TEST(b.parties() == 0U);
    error_code ec;
    b.arrive_and_drop(ec);
    BOOST_TEST((ec == errc::closed));
    party late;
    late.arrive_at(b);
    error_code from_coroutine;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::tie(from_coroutine, std::ignore) =
                co_await b.async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((late.result.error() == errc::closed));
    BOOST_TEST((from_coroutine == errc::closed));
    b.reset();
    BOOST_TEST(b.parties() == 0U);
    BOOST_TEST(actions == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reset_fails_the_waiters_and_the_barrier_is_usable, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    std::vector<party> all(2);
    arrive_all(b, all);
    b.reset();
    BOOST_TEST(!b.broken());
    BOOST_TEST(b.waiting() == 0U);
    std::vector<party> next(3);
    arrive_all(b, next);
    kit::run(io);
    for (auto& p : all)
        BOOST_TEST(p.is_broken());
    for (auto& p : next)
        BOOST_TEST(p.result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reset_does_not_fail_a_round_that_is_granted, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 2);
    std::vector<party> all(2);
    arrive_all(b, all);
    b.reset();
    kit::run(io);
    BOOST_TEST(all[0].result.succeeded());
    BOOST_TEST(all[1].result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(abort_breaks_the_barrier_until_reset, P, kit::policies)
{
    kit::drained_context io;
    barrier_of<P> b(io, 3);
    std::vector<party> all(2);
    arrive_all(b, all);
    b.abort();
    b.abort();
    BOOST_TEST(b.broken());
    party late;
    late.arrive_at(b);
    error_code from_coroutine;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::tie(from_coroutine, std::ignore) =
                co_await b.async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    for (auto& p : all)
        BOOST_TEST(p.is_broken());
    BOOST_TEST(late.is_broken());
    BOOST_TEST((from_coroutine == errc::broken));
    b.arrive_and_drop(); // also drops out of a broken barrier
    BOOST_TEST(b.parties() == 2U);
    b.reset();
    BOOST_TEST(!b.broken());
    std::vector<party> next(2);
    arrive_all(b, next);
    kit::run(io);
    BOOST_TEST(next[0].result.succeeded());
    BOOST_TEST(next[1].result.succeeded());
}

// ---- The action -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(the_action_runs_once_a_round_before_any_grant, P, kit::policies)
{
    kit::drained_context io;
    int actions = 0;
    std::vector<party> all(3);
    barrier_of<P> b(io, 3, {.action = [&] {
                        ++actions;
                        for (auto& p : all)
                            BOOST_TEST(!p.result.done());
                    }});
    for (std::size_t i = 0; i != 3; ++i) {
        BOOST_TEST(actions == 0);
        all[i].arrive_at(b);
    }
    BOOST_TEST(actions == 1); // inside the call of the last arrival
    kit::run(io);
    for (auto& p : all)
        BOOST_TEST(p.result.succeeded());
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            std::vector<party> others(2);
            arrive_all(b, others);
            BOOST_TEST(co_await b.async_arrive_and_wait() == 2U);
            BOOST_TEST(actions == 2);
            while (!others[1].result.done())
                co_await asio::post(asio::use_awaitable);
        },
        asio::detached);
    all.clear();
    kit::run(io);
    BOOST_TEST(actions == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_action_that_throws_breaks_the_barrier, P, kit::policies)
{
    kit::drained_context io;
    bool bad = true;
    barrier_of<P> b(io, 2, {.action = [&] {
                        if (bad)
                            throw std::runtime_error("from the action");
                    }});
    BOOST_TEST(!b.failure());
    std::vector<party> all(2);
    arrive_all(b, all); // does not throw
    BOOST_TEST(b.broken());
    BOOST_CHECK_THROW(std::rethrow_exception(b.failure()), std::runtime_error);
    kit::run(io);
    BOOST_TEST(all[0].is_broken());
    BOOST_TEST(all[1].is_broken());
    b.reset();
    BOOST_TEST(!b.failure());

    party other;
    error_code last;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            other.arrive_at(b);
            std::tie(last, std::ignore) =
                co_await b.async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST((last == errc::broken));
    BOOST_TEST(other.is_broken());

    b.reset();
    bad = false;
    std::vector<party> next(2);
    arrive_all(b, next);
    kit::run(io);
    BOOST_TEST(next[0].result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(arrivals_during_the_action_belong_to_the_next_rounds, P,
                              kit::policies)
{
    kit::drained_context io;
    std::vector<party> first(2);
    std::vector<party> second(2);
    std::vector<party> third(2);
    int actions = 0;
    std::optional<barrier_of<P>> b;
    b.emplace(io, 2, barrier_options{.action = [&] {
                  if (++actions == 1) {
                      arrive_all(*b, second); // one more arrival than a round needs
                      third[0].arrive_at(*b);
                      BOOST_TEST(actions == 1, "one action ran inside the other");
                  }
              }});
    arrive_all(*b, first);
    BOOST_TEST(actions == 2); // the action of the second round, after that of the first
    BOOST_TEST(b->waiting() == 1U);
    kit::poll_leaves_work(io);
    for (auto* round : {&first, &second}) {
        for (std::size_t i = 0; i != 2; ++i) {
            BOOST_TEST((*round)[i].result.succeeded());
            BOOST_TEST((*round)[i].index == i);
        }
    }
    BOOST_TEST(!third[0].result.done());
    third[1].arrive_at(*b);
    kit::run(io);
    BOOST_TEST(third[0].result.succeeded());
    BOOST_TEST(actions == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_party_cancelled_during_the_action_does_not_change_the_round, P,
                              kit::policies)
{
    for (auto policy : {cancelled_party::withdraws, cancelled_party::breaks_barrier}) {
        for (std::size_t cancelled : {0U, 1U}) { // the first arrival, or the last
            kit::drained_context io;
            std::vector<party> all(2);
            barrier_of<P> b(io, 2,
                            {.action = [&] { all[cancelled].cancel(); }, .on_cancel = policy});
            arrive_all(b, all);
            BOOST_TEST(b.waiting() == 0U);
            kit::run(io);
            BOOST_TEST(all[cancelled].result.aborted());
            BOOST_TEST(all[1 - cancelled].result.succeeded());
            BOOST_TEST(!b.broken());
            BOOST_TEST(b.waiting() == 0U);
        }
    }
}

// The last arrival is a coroutine, which does not suspend.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_round_that_its_action_resets_does_not_spoil_the_next, P,
                              kit::policies)
{
    kit::drained_context io;
    std::optional<barrier_of<P>> b;
    bool interfere = true;
    b.emplace(io, 2, barrier_options{.action = [&] {
                  if (interfere)
                      b->reset();
              }});
    const auto round = [&](party& other) {
        error_code last;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                other.arrive_at(*b);
                std::tie(last, std::ignore) =
                    co_await b->async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
            },
            asio::detached);
        kit::run(io);
        return last;
    };
    party spoiled;
    BOOST_TEST((round(spoiled) == errc::broken));
    BOOST_TEST(spoiled.is_broken());
    interfere = false;
    party next;
    BOOST_TEST(!round(next));
    BOOST_TEST(next.result.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_action_may_reset_or_abort_its_own_round, P, kit::policies)
{
    for (bool abort : {false, true}) {
        kit::drained_context io;
        std::optional<barrier_of<P>> b;
        bool interfere = true;
        b.emplace(io, 2, barrier_options{.action = [&] {
                      if (interfere)
                          abort ? b->abort() : b->reset();
                  }});
        std::vector<party> all(2);
        arrive_all(*b, all);
        BOOST_TEST(b->broken() == abort);
        kit::run(io);
        BOOST_TEST(all[0].is_broken());
        BOOST_TEST(all[1].is_broken());
        b->reset();
        interfere = false;
        std::vector<party> next(2);
        arrive_all(*b, next);
        kit::run(io);
        BOOST_TEST(next[0].result.succeeded());
        BOOST_TEST(next[1].result.succeeded());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_action_may_drop_parties, P, kit::policies)
{
    kit::drained_context io;
    int actions = 0;
    std::optional<barrier_of<P>> b;
    b.emplace(io, 2, barrier_options{.action = [&] {
                  if (++actions == 1)
                      b->arrive_and_drop(2); // the whole next round
              }});
    std::vector<party> all(2);
    arrive_all(*b, all);
    kit::run(io);
    BOOST_TEST(all[0].result.succeeded());
    BOOST_TEST(all[1].result.succeeded());
    BOOST_TEST(actions == 2);
    BOOST_TEST(b->parties() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_action_may_destroy_the_barrier, P, kit::policies)
{
    kit::drained_context io;
    std::unique_ptr<barrier_of<P>> b;
    b = std::make_unique<barrier_of<P>>(io, 2, barrier_options{.action = [&] { b.reset(); }});
    std::vector<party> all(2);
    arrive_all(*b, all);
    kit::run(io);
    BOOST_TEST(all[0].result.aborted());
    BOOST_TEST(all[1].result.aborted());
}

// No operation waits then, so that only the call itself keeps the action alive.
BOOST_AUTO_TEST_CASE_TEMPLATE(the_action_may_destroy_a_barrier_of_one_party, P, kit::policies)
{
    for (int way = 0; way != 3; ++way) {
        kit::drained_context io;
        std::unique_ptr<barrier_of<P>> b;
        bool alive = false;
        auto owned = std::make_shared<int>(0);
        const std::weak_ptr<int> watched = owned;
        b = std::make_unique<barrier_of<P>>(
            io, 1, barrier_options{.action = [&b, &alive, watched, owned = std::move(owned)] {
                auto& result = alive;
                const auto mine = watched;
                b.reset();
                result = !mine.expired();
            }});
        std::optional<party> callback(std::in_place);
        error_code coroutine;
        if (way == 0) {
            callback->arrive_at(*b);
        } else if (way == 1) {
            b->arrive_and_drop();
        } else {
            asio::co_spawn(
                io,
                [&]() -> asio::awaitable<void> {
                    std::tie(coroutine, std::ignore) =
                        co_await b->async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
                },
                asio::detached);
        }
        kit::run(io);
        BOOST_TEST(alive, "the action was destroyed while it ran");
        BOOST_TEST(callback->result.aborted() == (way == 0));
        BOOST_TEST((coroutine == asio::error::operation_aborted) == (way == 2));
        callback.reset(); // its signal could still have reached the barrier
        BOOST_TEST(watched.expired(), "the action has leaked");
    }
}

// ---- Cancel at step k -----------------------------------------------------------------------

// Seven arrivals at a barrier of three parties, run in a random order; one of them is cancelled
// after k steps. The number of waiting parties shows whether its arrival was undone.
template <class P>
class shuffled_rounds {
public:
    shuffled_rounds(std::uint64_t seed, cancelled_party policy)
        : chaos_(seed), barrier_(chaos_.get_executor(), 3,
                                 {.action = [this] { ++rounds_; }, .on_cancel = policy}),
          victim_(&all_[chaos_.pick(all_.size())])
    {
        for (auto& p : all_)
            asio::post(chaos_.get_executor(), [this, &p] {
                arrivals_ += barrier_.broken() ? 0 : 1;
                p.arrive_at(barrier_);
            });
    }

    bool cancel_after(std::size_t k)
    {
        for (std::size_t step = 0; step != k; ++step) {
            if (!chaos_.run_one())
                return false;
        }
        const std::size_t before = barrier_.waiting();
        victim_->cancel();
        left_ = before - barrier_.waiting();
        chaos_.run();
        return true;
    }

    void check()
    {
        const std::size_t gone = left_; // withdrawn, or failed with the round it broke
        BOOST_TEST(arrivals_ == gone + 3 * rounds_ + barrier_.waiting());
        BOOST_TEST(barrier_.waiting() < 3U);
        std::size_t successes = 0;
        std::size_t of_index[3] = {};
        for (auto& p : all_) {
            if (p.result.succeeded()) {
                ++successes;
                ++of_index[p.index];
            }
            if (&p != victim_)
                BOOST_TEST(!p.result.aborted());
        }
        const bool aborted_on_its_way = victim_->result.aborted() && gone == 0;
        BOOST_TEST(successes + (aborted_on_its_way ? 1 : 0) == 3 * rounds_);
        for (std::size_t n : of_index)
            BOOST_TEST((n == rounds_ || (aborted_on_its_way && n + 1 == rounds_)));
        if (gone == 0)
            BOOST_TEST(!barrier_.broken());
        barrier_.reset();
        chaos_.run();
        for (auto& p : all_)
            BOOST_TEST(p.result.done());
    }

private:
    std::vector<party> all_{7};
    kit::chaos_context chaos_;
    std::size_t rounds_ = 0;
    std::size_t arrivals_ = 0;
    std::size_t left_ = 0;
    barrier_of<P> barrier_;
    party* victim_;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_no_round_and_no_index, P, kit::policies)
{
    for (auto policy : {cancelled_party::withdraws, cancelled_party::breaks_barrier}) {
        kit::for_each_seed(100, [&](std::uint64_t seed) {
            bool reached = true;
            for (std::size_t k = 0; reached; ++k) {
                BOOST_TEST_REQUIRE(k < 1000U);
                shuffled_rounds<P> run(seed, policy);
                reached = run.cancel_after(k);
                run.check();
            }
        });
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
