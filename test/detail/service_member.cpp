// SPDX-License-Identifier: BSL-1.0
// States whose last reference is dropped late, and contexts that are destroyed before them.
#include "kit/completion.hpp"
#include "kit/joining_thread.hpp"
#include "kit/run.hpp"
#include "kit/wrapping_executor.hpp"

#include <turnstile/sync/barrier.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace {

namespace asio = boost::asio;
using kit::completion;
using kit::dropping;
using turnstile::error_code;

BOOST_AUTO_TEST_SUITE(service_member)

// An executor that owns an object.
template <class Owned>
asio::any_io_executor owning(asio::io_context& io, std::shared_ptr<Owned> owned)
{
    return kit::wrapping_executor{io.get_executor(), std::move(owned)};
}

// Leaves the cancellation handler of a completed wait in the slot; it holds a reference to the
// state.
void leave_in_slot(asio::cancellation_signal& signal, turnstile::mutex& m, asio::io_context& io)
{
    completion c;
    m.async_lock(asio::bind_cancellation_slot(signal.slot(), c.handler([](auto) {})));
    kit::poll_leaves_work(io);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE(the_last_reference_may_destroy_the_context)
{
    auto io = std::make_shared<asio::io_context>();
    const std::weak_ptr<asio::io_context> watched = io;
    {
        asio::cancellation_signal signal;
        {
            asio::io_context& context = *io;
            turnstile::mutex m(owning(context, std::exchange(io, nullptr)));
            leave_in_slot(signal, m, context);
        }
        BOOST_TEST(!watched.expired());
    }
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE(the_last_reference_may_destroy_another_object)
{
    asio::io_context io;
    auto other = std::make_shared<turnstile::event>(io);
    const std::weak_ptr<turnstile::event> watched = other;
    completion c;
    other->async_wait(c.handler([] {}));
    {
        asio::cancellation_signal signal;
        turnstile::mutex m(owning(io, std::exchange(other, nullptr)));
        leave_in_slot(signal, m, io);
    }
    BOOST_TEST(watched.expired());
    kit::run(io);
    BOOST_TEST(c.aborted());
}

// One thread drops the last reference while another thread destroys the context.
BOOST_AUTO_TEST_CASE(the_executor_of_a_state_is_destroyed_before_its_context)
{
    struct looks_at_context {
        std::shared_ptr<asio::io_context*> io;
        std::atomic<bool>* leaving;
        ~looks_at_context()
        {
            if (io.use_count() != 1)
                return;
            *leaving = true;
            for (int i = 0; i != 1000; ++i) {
                std::this_thread::yield();
                (*io)->stopped(); // the context still exists
            }
        }
        looks_at_context(const looks_at_context&) = default;
        looks_at_context& operator=(const looks_at_context&) = default;
        looks_at_context(std::shared_ptr<asio::io_context*> p, std::atomic<bool>* l)
            : io(std::move(p)), leaving(l)
        {
        }
    };
    std::atomic<bool> leaving{false};
    std::optional<asio::io_context> io(std::in_place);
    std::optional<asio::cancellation_signal> signal(std::in_place);
    {
        turnstile::mutex m(asio::any_io_executor(kit::wrapping_executor{
            io->get_executor(),
            looks_at_context{std::make_shared<asio::io_context*>(&*io), &leaving}}));
        leave_in_slot(*signal, m, *io);
    }
    kit::joining_thread last([&] { signal.reset(); });
    while (!leaving)
        std::this_thread::yield();
    io.reset();
    last.join();
}

// A handler that cancels another wait when it is destroyed.
struct cancels_another {
    asio::cancellation_signal* signal;
    cancels_another(asio::cancellation_signal& s) : signal(&s) {}
    cancels_another(cancels_another&& other) noexcept : signal(std::exchange(other.signal, nullptr))
    {
    }
    ~cancels_another()
    {
        if (signal)
            signal->emit(asio::cancellation_type::terminal);
    }
};

BOOST_AUTO_TEST_CASE(a_dropped_handler_may_cancel_another_wait)
{
    std::optional<asio::io_context> io(std::in_place);
    turnstile::barrier barrier(*io, 3);
    turnstile::local::barrier local_barrier(*io, 3);
    asio::cancellation_signal signals[2];
    completion others[2] = {completion(dropping::is_expected), completion(dropping::is_expected)};
    const auto start = [&](auto& b, int i) {
        b.async_arrive_and_wait([c = cancels_another(signals[i])](error_code, std::size_t) {});
        b.async_arrive_and_wait(
            asio::bind_cancellation_slot(signals[i].slot(), others[i].handler([](std::size_t) {})));
        BOOST_TEST(b.waiting() == 2U);
    };
    start(barrier, 0);
    start(local_barrier, 1);
    io.reset();
    BOOST_TEST(barrier.waiting() == 0U);
    BOOST_TEST(local_barrier.waiting() == 0U);
    for (auto& c : others)
        BOOST_TEST(c.dropped());
}

// The cancelled wait was granted and not yet delivered.
BOOST_AUTO_TEST_CASE(a_dropped_handler_may_cancel_a_granted_wait)
{
    std::optional<asio::io_context> io(std::in_place);
    turnstile::semaphore s(*io, 0);
    asio::cancellation_signal signal;
    completion other(dropping::is_expected);
    s.async_acquire([c = cancels_another(signal)](error_code, auto) {});
    s.async_acquire(asio::bind_cancellation_slot(signal.slot(), other.handler([](auto) {})));
    s.release(2);
    BOOST_TEST(s.available() == 0U);
    io.reset();
    BOOST_TEST(other.dropped());
    BOOST_TEST(s.available() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
