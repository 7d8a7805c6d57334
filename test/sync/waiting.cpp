// SPDX-License-Identifier: BSL-1.0
// waiting() of every object of this layer, for every operation that waits.
#include "contract/subjects/auto_reset_event.hpp"
#include "contract/subjects/barrier.hpp"
#include "contract/subjects/condition.hpp"
#include "contract/subjects/counter.hpp"
#include "contract/subjects/event.hpp"
#include "contract/subjects/latch.hpp"
#include "contract/subjects/mutex.hpp"
#include "contract/subjects/semaphore.hpp"
#include "contract/subjects/shared_mutex.hpp"
#include "kit/completion.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
using contract::strand_confined;
using contract::thread_safe;
using kit::completion;

// Not the upgrades: each of that subject's operations waits at a mutex of its own.
using lock_subjects = std::tuple<
    contract::shared_mutex_lock<thread_safe, contract::to_write, contract::to_write>,
    contract::shared_mutex_lock<strand_confined, contract::to_write, contract::to_write>,
    contract::shared_mutex_lock<thread_safe, contract::to_read, contract::to_write>,
    contract::shared_mutex_lock<strand_confined, contract::to_read, contract::to_write>,
    contract::shared_mutex_lock<thread_safe, contract::to_upgrade, contract::to_upgrade>,
    contract::shared_mutex_lock<strand_confined, contract::to_upgrade, contract::to_upgrade>>;

template <class... Tuples>
using joined = decltype(std::tuple_cat(std::declval<Tuples>()...));

using subjects = joined<contract::mutex_subjects, lock_subjects, contract::semaphore_subjects,
                        contract::event_subjects, contract::auto_reset_event_subjects,
                        contract::condition_subjects, contract::latch_subjects,
                        contract::counter_subjects, contract::barrier_subjects>;

BOOST_AUTO_TEST_SUITE(waiting)

BOOST_AUTO_TEST_CASE_TEMPLATE(counts_the_operations_that_are_queued, Subject, subjects)
{
    kit::drained_context io;
    Subject subject(io.get_executor());
    const auto consume = [&](auto&&... values) {
        subject.consume(std::forward<decltype(values)>(values)...);
    };
    BOOST_TEST(subject.object->waiting() == 0U);

    asio::cancellation_signal signal;
    std::array<completion, 3> waits;
    subject.async_op(waits[0].handler(consume));
    BOOST_TEST(subject.object->waiting() == 1U);
    subject.async_op(asio::bind_cancellation_slot(signal.slot(), waits[1].handler(consume)));
    subject.async_op(waits[2].handler(consume));
    BOOST_TEST(std::as_const(*subject.object).waiting() == 3U);

    // A waiter that is cancelled or granted is no longer counted, though its handler has not run.
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(subject.object->waiting() == 2U);
    subject.grant();
    BOOST_TEST(subject.object->waiting() == (Subject::is_broadcast ? 0U : 1U));
    while (kit::poll_leaves_work(io))
        subject.grant();
    BOOST_TEST(subject.object->waiting() == 0U);
    BOOST_TEST(waits[0].succeeded());
    BOOST_TEST(waits[1].aborted());
    BOOST_TEST(waits[2].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(counts_an_upgrade, P, kit::policies)
{
    kit::drained_context io;
    turnstile::basic_shared_mutex<asio::any_io_executor, P> m(io);
    turnstile::upgrade_lock lock(m, std::try_to_lock);
    BOOST_TEST_REQUIRE(m.try_lock_shared());
    completion upgrade;
    m.async_upgrade(lock, upgrade.handler([](auto) {}));
    BOOST_TEST(m.waiting() == 1U);
    m.unlock_shared();
    BOOST_TEST(m.waiting() == 0U);
    kit::run(io);
    BOOST_TEST(upgrade.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_notified_waiter_is_counted_by_the_mutex, P, kit::policies)
{
    kit::drained_context io;
    turnstile::basic_mutex<asio::any_io_executor, P> m(io);
    turnstile::basic_condition<asio::any_io_executor, P> c(io);
    turnstile::unique_lock lock(m, std::try_to_lock);
    completion wait;
    c.async_wait(lock, wait.handler([] {}));
    BOOST_TEST_REQUIRE(m.try_lock());
    c.notify_one();
    BOOST_TEST(c.waiting() == 0U);
    BOOST_TEST(kit::poll_leaves_work(io));
    BOOST_TEST(m.waiting() == 1U);
    m.unlock();
    BOOST_TEST(m.waiting() == 0U);
    kit::run(io);
    BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
