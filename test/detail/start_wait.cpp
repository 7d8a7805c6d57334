// SPDX-License-Identifier: BSL-1.0
// An operation that cannot be created: its grant is given back, and the coroutine frame that it was
// to be stored in may have been destroyed.
#include "kit/thread_executor.hpp"

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace {

namespace asio = boost::asio;
using turnstile::detail::coop_budget;
using turnstile::detail::owned_state;
using turnstile::detail::semaphore_state;
using turnstile::detail::semaphore_waiter;
using turnstile::detail::wait_decision;

using state_type = semaphore_state<turnstile::thread_safe>;

struct start_failure {};

// A context's executor, until the operation fails. From then on each function runs at once on a
// thread of its own, as another thread of the context might do at any moment.
class executor_until_failure : public kit::thread_executor {
public:
    executor_until_failure(asio::io_context& io, const bool& failed) noexcept
        : thread_executor(io), io_(&io), failed_(&failed)
    {
    }
    using thread_executor::query;
    executor_until_failure require(asio::execution::blocking_t::never_t) const noexcept
    {
        return *this;
    }
    template <class F>
    void execute(F&& f) const
    {
        if (*failed_)
            thread_executor::execute(std::forward<F>(f));
        else
            asio::post(*io_, std::forward<F>(f));
    }

private:
    asio::io_context* io_;
    const bool* failed_;
};

struct fixture {
    void start();
    void spawn();

    asio::io_context io;
    bool failed = false;
    owned_state<state_type> permits{io.get_executor(), std::uint64_t(1), std::uint64_t(1)};
    int given_back = 0;
    bool frame_is_gone = false;
    bool touched_when_gone = false;
};

// Its destructor reports whether the coroutine frame that holds it had been destroyed before.
struct watched_waiter : semaphore_waiter {
    using semaphore_waiter::semaphore_waiter;
    ~watched_waiter()
    {
        if (in && in->frame_is_gone)
            in->touched_when_gone = true;
    }
    fixture* in = nullptr;
};

// A wait that throws in prepare(), after try_now() was granted or not. The grant is a value that is
// moved with the request.
struct failing_request {
    using executor_type = asio::io_context::executor_type;
    using threading = turnstile::thread_safe;
    using result_type = void;
    using waiter_type = watched_waiter;
    static constexpr turnstile::detail::request_traits traits{};

    fixture* f;
    std::unique_ptr<std::uint64_t> granted{};

    executor_type executor() const noexcept { return f->io.get_executor(); }
    state_type& state() const noexcept { return *f->permits; }

    wait_decision try_now()
    {
        if (!state().try_acquire(1, state_type::one_handle))
            return wait_decision::pending();
        granted = std::make_unique<std::uint64_t>(1);
        return wait_decision::granted();
    }
    void give_back() noexcept
    {
        f->touched_when_gone = f->touched_when_gone || f->frame_is_gone;
        ++f->given_back;
        if (granted)
            state().release(*granted, state_type::one_handle);
    }
    [[noreturn]] void prepare(watched_waiter& w) const
    {
        w.in = f;
        f->failed = true;
        throw start_failure();
    }
    void take_now() const noexcept {}
};

// Reports the destruction of the coroutine that holds it.
struct frame_watch {
    explicit frame_watch(fixture& watched) noexcept : f(watched) {}
    frame_watch(const frame_watch&) = delete;
    ~frame_watch() { f.frame_is_gone = true; }
    fixture& f;
};

asio::awaitable<void> wait_that_fails_to_start(fixture& f)
{
    const frame_watch watch(f);
    co_await turnstile::detail::start_wait(failing_request{&f}, asio::use_awaitable);
}

void fixture::start()
{
    turnstile::detail::start_wait(failing_request{this}, [](turnstile::error_code) {});
}

void fixture::spawn()
{
    asio::co_spawn(asio::any_io_executor(executor_until_failure(io, failed)),
                   wait_that_fails_to_start(*this), asio::detached);
}

BOOST_AUTO_TEST_SUITE(start_wait)

BOOST_FIXTURE_TEST_CASE(a_grant_is_given_back_if_the_operation_cannot_be_created, fixture)
{
    BOOST_CHECK_THROW(start(), start_failure);
    BOOST_TEST(given_back == 1);
    BOOST_TEST(permits->available() == 1U);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_given_back_without_a_grant, fixture)
{
    BOOST_TEST(permits->try_acquire(1, state_type::no_handle));
    BOOST_CHECK_THROW(start(), start_failure);
    BOOST_TEST(given_back == 0);
    BOOST_TEST(permits->available() == 0U);
}

// The exception ends the coroutine, whose frame was to hold the operation. The address sanitizer
// detects more uses of the frame than this test.
BOOST_FIXTURE_TEST_CASE(a_coroutine_that_must_wait_is_not_touched_after_its_destruction, fixture)
{
    BOOST_TEST(permits->try_acquire(1, state_type::no_handle));
    spawn();
    BOOST_CHECK_THROW(io.run(), start_failure);
    BOOST_TEST(frame_is_gone);
    BOOST_TEST(!touched_when_gone);
    BOOST_TEST(given_back == 0);
}

BOOST_FIXTURE_TEST_CASE(the_grant_of_a_coroutine_is_given_back_before_its_destruction, fixture)
{
    while (coop_budget::try_consume()) { // so that the next wait does not take the short cut
    }
    for (unsigned i = 0; i != coop_budget::size; ++i)
        BOOST_TEST_REQUIRE(coop_budget::try_consume());
    spawn();
    BOOST_CHECK_THROW(io.run(), start_failure);
    BOOST_TEST(frame_is_gone);
    BOOST_TEST(!touched_when_gone);
    BOOST_TEST(given_back == 1);
    BOOST_TEST(permits->available() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
