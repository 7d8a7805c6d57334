// SPDX-License-Identifier: BSL-1.0
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <turnstile/channel/queue.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/shared_mutex.hpp>

#include <boost/asio.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>
#include <type_traits>

#if __has_include(<sys/wait.h>)
#    include <sys/wait.h>
#    include <unistd.h>
#endif

namespace {

namespace asio = boost::asio;
using turnstile::strand_confined;
using turnstile::thread_safe;

static_assert(std::is_empty_v<strand_confined::mutex_type>);

BOOST_AUTO_TEST_SUITE(threading)

template <class Atomic>
void behaves_like_an_atomic()
{
    constexpr auto relaxed = std::memory_order_relaxed;
    Atomic atomic(1);
    atomic.store(4, relaxed);
    BOOST_TEST(atomic.fetch_add(5, relaxed) == 4);
    BOOST_TEST(atomic.fetch_sub(2, relaxed) == 9);
    BOOST_TEST(atomic.load(relaxed) == 7);
    const auto double_if_odd = [](int& value) {
        const bool is_odd = value % 2 != 0;
        value *= 2;
        return is_odd;
    };
    BOOST_TEST(atomic.update(double_if_odd, relaxed));
    BOOST_TEST(atomic.load(relaxed) == 14);
    BOOST_TEST(!atomic.update(double_if_odd, relaxed));
    BOOST_TEST(atomic.load(relaxed) == 14);
    BOOST_TEST(turnstile::detail::set_bits(atomic, 3) == 14);
    BOOST_TEST(atomic.load(relaxed) == 15);
    BOOST_TEST(turnstile::detail::set_bits(atomic, 3) == 15);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_atomic_of_a_policy_behaves_like_an_atomic, P, kit::policies)
{
    behaves_like_an_atomic<typename P::template atomic_type<int>>();
}

BOOST_AUTO_TEST_CASE(a_call_from_outside_a_running_strand_is_detected)
{
    asio::io_context io;
    auto strand = asio::make_strand(io);
    turnstile::detail::semaphore_state<strand_confined> state(strand, 1U, 1U);
    BOOST_TEST(!state.called_from_wrong_strand()); // set-up, before anything runs
    std::promise<bool> wrong_inside;
    std::promise<void> seen;
    std::thread worker([&] {
        asio::post(strand, [&] {
            wrong_inside.set_value(state.called_from_wrong_strand());
            seen.get_future().wait();
        });
        io.run();
    });
    BOOST_TEST(!wrong_inside.get_future().get());
    BOOST_TEST(state.called_from_wrong_strand()); // the worker is inside; this thread is not
    seen.set_value();
    worker.join();
    // Once the context has stopped, nothing can be running in the strand.
    BOOST_TEST(!state.called_from_wrong_strand());
    state.retire();
}

BOOST_AUTO_TEST_CASE(a_call_from_outside_a_running_context_is_detected)
{
    asio::io_context io;
    turnstile::detail::semaphore_state<strand_confined> state(io.get_executor(), 1U, 1U);
    std::promise<bool> wrong_inside;
    std::promise<void> seen;
    std::thread worker([&] {
        asio::post(io, [&] {
            wrong_inside.set_value(state.called_from_wrong_strand());
            seen.get_future().wait();
        });
        io.run();
    });
    BOOST_TEST(!wrong_inside.get_future().get());
    BOOST_TEST(state.called_from_wrong_strand());
    seen.set_value();
    worker.join();
    BOOST_TEST(!state.called_from_wrong_strand());
    state.retire();
}

// The context has not stopped, but no thread runs it.
BOOST_AUTO_TEST_CASE(a_call_after_the_end_of_the_running_thread_is_accepted)
{
    asio::io_context io;
    const auto work = asio::make_work_guard(io);
    turnstile::detail::semaphore_state<strand_confined> state(io.get_executor(), 1U, 1U);
    std::thread([&] {
        asio::post(io, [&] { BOOST_TEST(!state.called_from_wrong_strand()); });
        io.poll();
    }).join();
    BOOST_TEST(!state.called_from_wrong_strand());
    state.retire();
}

#ifndef NDEBUG
// Two threads run a context without a strand. A call by one thread is detected while the other
// thread is inside a completion of the same object.
BOOST_AUTO_TEST_CASE(a_call_during_a_completion_on_another_thread_is_detected)
{
    asio::thread_pool pool(2);
    using state_type = turnstile::detail::semaphore_state<strand_confined>;
    const boost::intrusive_ptr<state_type> state(
        new state_type(pool.get_executor(), 0U, 1U, state_type::no_handle));
    std::promise<void> reached;
    std::promise<void> seen;
    struct blocking : turnstile::detail::semaphore_waiter {
        blocking(std::promise<void>& r, std::promise<void>& s)
            : semaphore_waiter(&blocking::run), reached_(r), seen_(s)
        {
        }
        static void run(turnstile::detail::waiter& w, turnstile::detail::task_action)
        {
            auto& self = static_cast<blocking&>(w);
            self.reached_.set_value();
            self.seen_.get_future().wait();
        }
        std::promise<void>& reached_;
        std::promise<void>& seen_;
    } w(reached, seen);
    state->start(w);
    BOOST_TEST(!state->called_from_wrong_strand());
    state->release(1, state_type::no_handle);
    reached.get_future().wait();
    BOOST_TEST(state->called_from_wrong_strand());
    seen.set_value();
    pool.join();
    BOOST_TEST(!state->called_from_wrong_strand());
    state->retire();
}
#endif

BOOST_AUTO_TEST_CASE(a_call_that_cannot_be_classified_is_accepted)
{
    asio::io_context io;
    turnstile::detail::semaphore_state<strand_confined> state(io.get_executor(), 1U, 1U);
    std::thread([&] { BOOST_TEST(!state.called_from_wrong_strand()); }).join();
    BOOST_TEST(!state.called_from_wrong_strand());
    state.retire();
}

// Not with sanitizers: the thread sanitizer starts no threads in a forked process.
#if !defined(NDEBUG) && !defined(TURNSTILE_SANITIZED) && __has_include(<sys/wait.h>)

// Whether an assertion fails in f, which runs in a process of its own.
template <class F>
bool fails_an_assertion(F f)
{
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        std::fclose(stderr);
        f();
        std::_Exit(0);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// Calls `use` from outside the context while another thread runs inside.
template <class Object, class... Args>
bool is_caught(void (*use)(Object&), Args... args)
{
    return fails_an_assertion([&] {
        asio::io_context io;
        Object object(io, args...);
        std::promise<void> inside;
        std::promise<void> end;
        std::thread worker([&] {
            asio::post(io, [&] {
                use(object); // allowed, and recorded as the running thread
                inside.set_value();
                end.get_future().wait();
            });
            io.run();
        });
        inside.get_future().wait();
        use(object);
        end.set_value();
        worker.join();
    });
}

BOOST_AUTO_TEST_CASE(a_public_call_from_the_wrong_strand_fails_an_assertion)
{
    namespace local = turnstile::local;
    using upgradable = turnstile::upgrade_lock<local::shared_mutex>;
    BOOST_TEST(is_caught<local::event>([](local::event& e) { e.set(); }));
    BOOST_TEST(is_caught<local::queue<int>>([](local::queue<int>& q) { (void)q.try_push(1); }, 4U));
    BOOST_TEST(
        is_caught<local::mutex>([](local::mutex& m) { m.async_lock([](auto, const auto&) {}); }));
    BOOST_TEST(is_caught<local::shared_mutex>([](local::shared_mutex& m) {
        static upgradable held;
        if (!held)
            held = upgradable(m, std::try_to_lock);
        else
            m.async_upgrade(held, [](auto, const auto&) {});
    }));
}

#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace
