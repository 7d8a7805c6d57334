// SPDX-License-Identifier: BSL-1.0
// The parts of core/ that no single primitive shows.
#include "kit/chaos_executor.hpp"
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/detail/post/buffer_allocator.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/detail/util/coop_budget.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;
using turnstile::error_code;
using turnstile::detail::posting_executor;

using events = std::tuple<turnstile::event, turnstile::local::event>;

BOOST_AUTO_TEST_SUITE(mechanism)

BOOST_AUTO_TEST_CASE(a_target_looks_through_any_io_executor)
{
    asio::io_context io;
    asio::thread_pool pool(1);
    const auto strand = asio::make_strand(io);
    const auto pool_strand = asio::make_strand(pool);
    const auto any_strand = asio::make_strand(asio::any_io_executor(io.get_executor()));
    const auto same = [](const auto& executor) {
        return posting_executor(executor) == posting_executor(asio::any_io_executor(executor));
    };
    BOOST_TEST(same(io.get_executor()));
    BOOST_TEST(same(pool.get_executor()));
    BOOST_TEST(same(strand));
    BOOST_TEST(same(pool_strand));
    BOOST_TEST(same(any_strand));
    BOOST_TEST(!(posting_executor(strand) == posting_executor(io.get_executor())));
    asio::io_context other;
    BOOST_TEST(!(posting_executor(other.get_executor()) == posting_executor(io.get_executor())));
}

BOOST_AUTO_TEST_CASE(a_buffer_serves_what_fits_and_the_heap_the_rest)
{
    struct large {
        char bytes[100];
    };
    alignas(std::max_align_t) std::byte buffer[16];
    turnstile::detail::buffer_allocator<int, 16> fits(buffer);
    int* p = fits.allocate(1);
    BOOST_TEST(static_cast<void*>(p) == static_cast<void*>(buffer));
    fits.deallocate(p, 1);
    turnstile::detail::buffer_allocator<large, 16> rest(fits);
    large* q = rest.allocate(1);
    BOOST_TEST(static_cast<void*>(q) != static_cast<void*>(buffer));
    rest.deallocate(q, 1);
    BOOST_TEST((rest == fits));
}

BOOST_AUTO_TEST_CASE(the_budget_refuses_once_in_every_129)
{
    using turnstile::detail::coop_budget;
    while (coop_budget::try_consume()) {
    }
    for (int round = 0; round != 3; ++round) {
        for (unsigned i = 0; i != coop_budget::size; ++i)
            BOOST_TEST(coop_budget::try_consume());
        BOOST_TEST(!coop_budget::try_consume());
    }
}

// It has let others in, so it need not do so again soon.
BOOST_AUTO_TEST_CASE(a_coroutine_that_waits_has_its_whole_budget_again)
{
    using turnstile::detail::coop_budget;
    asio::io_context io;
    turnstile::mutex mutex(io);
    BOOST_TEST_REQUIRE(mutex.try_lock());
    unsigned left = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            while (coop_budget::try_consume()) {
            }
            BOOST_TEST(coop_budget::try_consume());
            const auto lock = co_await mutex.async_lock();
            while (coop_budget::try_consume())
                ++left;
        },
        asio::detached);
    io.poll();
    mutex.unlock();
    io.run();
    BOOST_TEST(left == coop_budget::size);
}

// What it spawns starts inside it, and waits; but the thread has not been with others.
BOOST_AUTO_TEST_CASE(a_loop_that_spawns_what_waits_lets_others_in)
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    turnstile::event event(io);
    bool other_ran = false;
    int rounds = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::post(io, [&] { other_ran = true; });
            while (!other_ran && ++rounds != 1000) {
                const auto lock = co_await mutex.async_lock();
                asio::co_spawn(io, event.async_wait(asio::use_awaitable), asio::detached);
            }
            event.set();
        },
        asio::detached);
    io.run();
    BOOST_TEST(rounds < 1000);
}

// A user's own, which does not say of what type its context is.
struct discreet_executor {
    asio::io_context::executor_type inner;

    asio::execution_context& query(asio::execution::context_t) const noexcept
    {
        return asio::query(inner, asio::execution::context);
    }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
    {
        return asio::execution::blocking.never;
    }
    discreet_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const
    {
        asio::require(inner, asio::execution::blocking.never).execute(std::move(f));
    }
    friend bool operator==(const discreet_executor&, const discreet_executor&) = default;
};

// It is posted to, without the help of the object's context.
BOOST_AUTO_TEST_CASE(an_executor_of_the_users_own_is_not_the_systems)
{
    kit::drained_context home;
    kit::drained_context away;
    turnstile::event e(home);
    completion c;
    e.async_wait(asio::bind_executor(discreet_executor{away.get_executor()}, c.handler([] {})));
    e.set();
    kit::run(away);
    BOOST_TEST(c.succeeded());
}

// An executor that has no memory for what it is given, if told so.
auto refusing(kit::chaos_context& chaos, const bool& refuse)
{
    return kit::wrapping_executor{chaos.get_executor(), kit::refusal{&refuse}};
}

BOOST_AUTO_TEST_CASE(a_wake_up_that_cannot_be_queued_passes_its_grant_on)
{
    kit::drained_context io;
    kit::chaos_context chaos(1);
    bool refuse = false;
    turnstile::mutex m(io);
    BOOST_TEST_REQUIRE(m.try_lock());
    std::vector<completion> late(2);
    completion next;
    const auto hold = [](auto lock) { lock.release(); };
    for (auto& c : late)
        m.async_lock(asio::bind_executor(refusing(chaos, refuse), c.handler(hold)));
    m.async_lock(next.handler(hold));
    refuse = true;
    m.unlock(); // does not throw
    kit::run(io);
    BOOST_TEST(next.succeeded());
    refuse = false;
    chaos.run();
    for (auto& c : late)
        BOOST_TEST(!c.done());
    completion another;
    m.async_lock(another.handler([](auto) {}));
    m.unlock();
    kit::run(io);
    BOOST_TEST(another.succeeded());
    chaos.run();
    for (auto& c : late)
        BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE(a_handler_on_an_idle_strand_is_queued_in_memory_of_its_own)
{
    // A strand that is idle queues two things for one post.
    kit::drained_context io;
    turnstile::mutex m(io);
    const auto strand = asio::make_strand(io);
    std::vector<completion> all(3);
    for (auto& c : all)
        m.async_lock(asio::bind_executor(strand, c.handler([](auto) {})));
    kit::run(io);
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
}

// An executor that wakes others while it is given something, and has no memory for that itself.
struct wakes_others_and_refuses {
    turnstile::event** other;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (turnstile::event* e = std::exchange(*other, nullptr)) {
            e->set();
            throw std::bad_alloc();
        }
        inner.execute(std::move(f));
    }
};

BOOST_AUTO_TEST_CASE(a_post_inside_a_post_that_fails_is_another)
{
    kit::drained_context io;
    turnstile::event other{asio::any_io_executor(asio::make_strand(io))};
    turnstile::event* next = nullptr;
    turnstile::event e{asio::any_io_executor(
        kit::wrapping_executor{io.get_executor(), wakes_others_and_refuses{&next}})};
    completion inner;
    completion outer;
    other.async_wait(inner.handler([] {}));
    e.async_wait(outer.handler([] {}));
    next = &other;
    e.set(); // it stays ready
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(inner.succeeded());
    BOOST_TEST(!outer.done());
    completion another;
    e.async_wait(another.handler([] {}));
    kit::run(io);
    BOOST_TEST(outer.succeeded());
    BOOST_TEST(another.succeeded());
}

BOOST_AUTO_TEST_CASE(a_batched_wake_up_that_cannot_be_queued_goes_with_the_next)
{
    kit::chaos_context chaos(1);
    bool refuse = false;
    turnstile::local::event e{asio::any_io_executor(refusing(chaos, refuse))};
    std::vector<completion> all(3);
    for (auto& c : all)
        e.async_wait(c.handler([] {}));
    refuse = true;
    e.set();
    refuse = false;
    chaos.run();
    BOOST_TEST(!all[0].done());
    completion next;
    e.async_wait(next.handler([] {}));
    chaos.run();
    for (auto& c : all)
        BOOST_TEST(c.succeeded());
    BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wake_up_of_many_takes_few_posts, Event, events)
{
    asio::io_context io;
    Event e(io);
    int woken = 0;
    for (int i = 0; i != 1000; ++i)
        e.async_wait([&](error_code) { ++woken; });
    e.set();
    const std::size_t handlers = io.run();
    BOOST_TEST(woken == 1000);
    BOOST_TEST(handlers == 9U); // 1000 / 128, rounded up, and one that finds nothing to do
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_lets_other_handlers_in, Event, events)
{
    asio::io_context io;
    Event e(io);
    int woken = 0;
    int woken_before_other = -1;
    for (int i = 0; i != 1000; ++i)
        e.async_wait([&](error_code) { ++woken; });
    asio::post(io, [&] {
        e.set();
        asio::post(io, [&] { woken_before_other = woken; });
    });
    io.run();
    BOOST_TEST(woken_before_other < 1000);
}

struct held_up_post {
    std::promise<void> reached;
    std::promise<void> let_go;
};

// For an executor that can be told to hold up its next post.
struct hold_up {
    held_up_post** next;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (held_up_post* post = std::exchange(*next, nullptr)) {
            post->reached.set_value();
            post->let_go.get_future().wait();
        }
        inner.execute(std::move(f));
    }
};

BOOST_AUTO_TEST_CASE(the_context_has_work_until_the_wake_up_is_really_posted)
{
    asio::io_context io;
    held_up_post post;
    held_up_post* next = nullptr;
    turnstile::semaphore s(
        asio::any_io_executor(kit::wrapping_executor{io.get_executor(), hold_up{&next}}), 0);
    std::vector<completion> both(2);
    for (auto& c : both)
        s.async_acquire(c.handler([](auto permit) { (void)permit.detach(); }));
    next = &post;
    std::thread slow([&] { s.release(); }); // has decided to post, and is held up
    post.reached.get_future().wait();
    s.release(); // leaves the posting to the other, and the queue empty
    BOOST_TEST(kit::poll_leaves_work(io), "run() would have returned");
    post.let_go.set_value();
    slow.join();
    kit::run(io);
    for (auto& c : both)
        BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE(a_strand_that_goes_before_the_object_leaks_no_handler)
{
    completion first(dropping::is_expected);
    completion second(dropping::is_expected);
    {
        asio::io_context io;
        const turnstile::mutex older(io); // so the strands' service is the first to go
        auto m = std::make_shared<turnstile::mutex>(asio::make_strand(io));
        BOOST_TEST_REQUIRE(m->try_lock());
        m->async_lock(first.handler([m](auto) {}));
        m->async_lock(second.handler([m](auto) {}));
        m->unlock();
    }
    BOOST_TEST(first.dropped());
    BOOST_TEST(second.dropped());
}

BOOST_AUTO_TEST_CASE(a_signal_may_outlive_the_strand_and_its_context)
{
    asio::cancellation_signal signal;
    completion c;
    {
        asio::io_context io;
        turnstile::mutex m(asio::make_strand(io));
        m.async_lock(asio::bind_cancellation_slot(signal.slot(), c.handler([](auto) {})));
        io.run();
    }
    BOOST_TEST(c.succeeded());
    signal.emit(asio::cancellation_type::terminal);
}

BOOST_AUTO_TEST_CASE(an_operation_started_while_the_context_goes_is_destroyed)
{
    std::optional<asio::io_context> io(std::in_place);
    auto m = std::make_shared<turnstile::mutex>(*io);
    BOOST_TEST_REQUIRE(m->try_lock());
    completion late(dropping::is_expected);
    struct starts_another {
        std::shared_ptr<turnstile::mutex> m;
        completion late;
        ~starts_another()
        {
            if (m)
                m->async_lock(late.handler([](auto) {}));
        }
        starts_another(std::shared_ptr<turnstile::mutex> mutex, completion c)
            : m(std::move(mutex)), late(std::move(c))
        {
        }
        starts_another(starts_another&&) = default;
        starts_another& operator=(starts_another&&) = default;
    };
    m->async_lock([s = starts_another(m, late)](error_code, auto) {});
    io.reset();
    BOOST_TEST(late.dropped());
}

using both_mutexes = std::tuple<turnstile::mutex, turnstile::local::mutex>;

// Design, rule 4, where the handler is not on the object's executor.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_elsewhere_brings_all_its_memory, Mutex, both_mutexes)
{
    kit::drained_context home;
    kit::drained_context elsewhere;
    Mutex m(home);
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    BOOST_TEST(m.try_lock());
    m.async_lock(asio::bind_allocator(
        kit::failing_allocator<char>(plan),
        asio::bind_executor(elsewhere, [&](error_code, auto) { live = plan.live(); })));
    const auto while_waiting = plan.allocated;
    m.unlock();
    kit::run(home);
    kit::run(elsewhere);
    BOOST_TEST((live == 0U));
    BOOST_TEST(while_waiting == 2U);
    // The strand of a confined object is left by a dispatch.
    BOOST_TEST(plan.allocated == (Mutex::threading_policy::is_confined ? 3U : 2U));
}

BOOST_AUTO_TEST_CASE(what_is_the_systems_is_told_without_asking_for_its_context)
{
    using turnstile::detail::is_system_executor;
    const asio::system_executor system;
    asio::io_context io;
    BOOST_TEST(is_system_executor(system));
    BOOST_TEST(is_system_executor(asio::any_io_executor(system)));
    BOOST_TEST(is_system_executor(
        asio::any_io_executor(asio::require(system, asio::execution::blocking.never))));
    BOOST_TEST(!is_system_executor(io.get_executor()));
    BOOST_TEST(!is_system_executor(asio::make_strand(io)));
    BOOST_TEST(!is_system_executor(asio::any_io_executor(asio::make_strand(io))));
    BOOST_TEST(!is_system_executor(asio::make_strand(system)));
    BOOST_TEST(!is_system_executor(discreet_executor{io.get_executor()}));
    BOOST_TEST(!is_system_executor(asio::any_io_executor(discreet_executor{io.get_executor()})));
    turnstile::detail::promise_executor* of_a_future = nullptr;
    using other_future = asio::associated_executor_t<asio::async_result<
        asio::use_future_t<>, void(error_code, std::unique_ptr<int>)>::completion_handler_type>;
    BOOST_TEST(turnstile::detail::may_be_system_executor<std::decay_t<decltype(*of_a_future)>>);
    BOOST_TEST(turnstile::detail::may_be_system_executor<other_future>);
}

#ifdef __linux__
BOOST_AUTO_TEST_CASE(a_handler_elsewhere_starts_no_threads)
{
    const auto threads = [] {
        using entries = std::filesystem::directory_iterator;
        return std::distance(entries("/proc/self/task"), entries());
    };
    const auto before = threads();
    asio::io_context io;
    turnstile::mutex m(io);
    completion c;
    m.async_lock(asio::bind_executor(asio::make_strand(io), c.handler([](auto) {})));
    const auto future = m.async_lock(asio::use_future);
    kit::run(io);
    BOOST_TEST(c.succeeded());
    BOOST_TEST(threads() <= before); // one that has just ended may still be counted
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
