// SPDX-License-Identifier: BSL-1.0
// What happens between two steps of a lock-free path: here the test decides it.
#include <turnstile/sync/detail/semaphore_state.hpp>

// The library has the gate for its own two policies; this one is for a policy of the test's.
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

// As thread_safe, but after each load of a number of permits comes what others do meanwhile,
// if they can: not while the lock is held.
struct interrupted {
    static inline bool locked = false;
    struct mutex_type {
        static void lock() noexcept { locked = true; }
        static void unlock() noexcept { locked = false; }
    };
    static inline std::vector<std::function<void()>> meanwhile;

    static void load_is_over()
    {
        if (locked || meanwhile.empty())
            return;
        // What comes meanwhile is not interrupted itself.
        auto rest = std::exchange(meanwhile, {});
        rest.front()();
        rest.erase(rest.begin());
        meanwhile = std::move(rest);
    }
    static void rest_is_over()
    {
        while (!meanwhile.empty())
            load_is_over();
    }

    template <class T>
    struct interrupted_atomic : std::atomic<T> {
        using std::atomic<T>::atomic;
        T load(std::memory_order order) const noexcept
        {
            const T value = std::atomic<T>::load(order);
            load_is_over();
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

BOOST_AUTO_TEST_SUITE(permits)

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
        // Down after it has seen what is available, and up after it has seen the maximum: what
        // is available is then the same again.
        interrupted::meanwhile = {[&] { g->resize(1); }, [&] { g->resize(2); }};
        BOOST_TEST(g->release(2, state_type::no_handle));
        interrupted::rest_is_over();
        BOOST_TEST(g->available() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_release_of_too_much_is_refused_whatever_it_meets)
{
    asio::io_context io;
    turnstile::detail::owned_state<state_type> g(io.get_executor(), 1U, 2U);
    BOOST_TEST(g->try_acquire(1, state_type::no_handle));
    interrupted::meanwhile = {[&] { g->resize(3); }, [&] { g->resize(2); }};
    BOOST_TEST(!g->release(3, state_type::no_handle));
    interrupted::rest_is_over();
    BOOST_TEST(g->available() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
