// SPDX-License-Identifier: BSL-1.0
// Lock-free paths of semaphore_state that are interrupted between two steps by another call.
#include <turnstile/sync/detail/semaphore_state.hpp>

// The library instantiates the state for its own two policies; this is for a policy of the test.
#include "../../src/detail/post/completion_drain.cpp"
#include "../../src/detail/wait/wait_state.cpp"
#include "../../src/sync/semaphore_state.cpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;

// As thread_safe, but each load of a word is followed by one of the `interruptions`, except while
// the lock is held.
struct interrupted {
    static inline bool locked = false;
    struct mutex_type {
        static void lock() noexcept { locked = true; }
        static void unlock() noexcept { locked = false; }
    };
    static inline std::vector<std::function<void()>> interruptions;

    static void interrupt()
    {
        if (locked || interruptions.empty())
            return;
        // An interruption is not interrupted itself.
        auto rest = std::exchange(interruptions, {});
        rest.front()();
        rest.erase(rest.begin());
        interruptions = std::move(rest);
    }
    static void run_all()
    {
        while (!interruptions.empty())
            interrupt();
    }

    template <class T>
    struct interrupted_atomic : std::atomic<T> {
        using std::atomic<T>::atomic;
        T load(std::memory_order order) const noexcept
        {
            const T value = std::atomic<T>::load(order);
            interrupt();
            return value;
        }
        template <class Change>
        bool update(Change change, std::memory_order order) noexcept
        {
            T now = load(std::memory_order_acquire);
            for (T next = now; change(next); next = now) {
                if (this->compare_exchange_weak(now, next, order))
                    return true;
            }
            return false;
        }
    };

    static constexpr bool is_confined = false;
    template <class T>
    using atomic_type =
        std::conditional_t<std::is_same_v<T, std::uint64_t>, interrupted_atomic<T>, std::atomic<T>>;
};

using state_type = turnstile::detail::semaphore_state<interrupted>;

BOOST_AUTO_TEST_SUITE(semaphore_state)

BOOST_AUTO_TEST_CASE(permits_survive_a_resize_that_meets_their_release)
{
    for (const bool before : {false, true}) {
        asio::io_context io;
        turnstile::detail::owned_state<state_type> g(io.get_executor(), 2U, 2U);
        BOOST_TEST(g->try_acquire(2, state_type::no_handle));
        if (before) {
            g->resize(1);
            g->resize(2);
        }
        // Shrinks after the release has read the available permits, and grows after it has read
        // the maximum. The available permits are then the same again.
        interrupted::interruptions = {[&] { g->resize(1); }, [&] { g->resize(2); }};
        BOOST_TEST(g->release(2, state_type::no_handle));
        interrupted::run_all();
        BOOST_TEST(g->available() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_release_of_too_many_permits_is_refused_during_a_resize)
{
    asio::io_context io;
    turnstile::detail::owned_state<state_type> g(io.get_executor(), 1U, 2U);
    BOOST_TEST(g->try_acquire(1, state_type::no_handle));
    interrupted::interruptions = {[&] { g->resize(3); }, [&] { g->resize(2); }};
    BOOST_TEST(!g->release(3, state_type::no_handle));
    interrupted::run_all();
    BOOST_TEST(g->available() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
