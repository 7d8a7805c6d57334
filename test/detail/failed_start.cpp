// SPDX-License-Identifier: BSL-1.0
// An operation that cannot be made: what it was granted is given back, and what it was to
// live in may be gone.
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

struct no_luck {};

// A context's executor, until the operation fails: then a thread of its own does at once what
// several threads of the context might do at any moment.
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

// Its own destruction says whether it was in a coroutine's frame that was no more.
struct watched_waiter : semaphore_waiter {
    using semaphore_waiter::semaphore_waiter;
    ~watched_waiter()
    {
        if (in && in->frame_is_gone)
            in->touched_when_gone = true;
    }
    fixture* in = nullptr;
};

// A wait that is granted or not, and fails to get ready. What it was granted it knows by a
// value that is moved with it.
struct unlucky_request {
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
        throw no_luck();
    }
    void take_now() const noexcept {}
};

// Says when the coroutine that it is in is destroyed.
struct frame_watch {
    explicit frame_watch(fixture& watched) noexcept : f(watched) {}
    frame_watch(const frame_watch&) = delete;
    ~frame_watch() { f.frame_is_gone = true; }
    fixture& f;
};

asio::awaitable<void> wait_without_luck(fixture& f)
{
    const frame_watch watch(f);
    co_await turnstile::detail::start_wait(unlucky_request{&f}, asio::use_awaitable);
}

void fixture::start()
{
    turnstile::detail::start_wait(unlucky_request{this}, [](turnstile::error_code) {});
}

void fixture::spawn()
{
    asio::co_spawn(asio::any_io_executor(executor_until_failure(io, failed)),
                   wait_without_luck(*this), asio::detached);
}

BOOST_AUTO_TEST_SUITE(failed_start)

BOOST_FIXTURE_TEST_CASE(what_was_granted_is_given_back, fixture)
{
    BOOST_CHECK_THROW(start(), no_luck);
    BOOST_TEST(given_back == 1);
    BOOST_TEST(permits->available() == 1U);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_given_back_where_nothing_was_granted, fixture)
{
    BOOST_TEST(permits->try_acquire(1, state_type::no_handle));
    BOOST_CHECK_THROW(start(), no_luck);
    BOOST_TEST(given_back == 0);
    BOOST_TEST(permits->available() == 0U);
}

// The coroutine is over then, and its frame is where the operation was to be. The address
// sanitizer sees more of this than the test.
BOOST_FIXTURE_TEST_CASE(a_coroutine_that_has_to_wait_is_left_alone_once_it_is_gone, fixture)
{
    BOOST_TEST(permits->try_acquire(1, state_type::no_handle));
    spawn();
    BOOST_CHECK_THROW(io.run(), no_luck);
    BOOST_TEST(frame_is_gone);
    BOOST_TEST(!touched_when_gone);
    BOOST_TEST(given_back == 0);
}

BOOST_FIXTURE_TEST_CASE(what_a_coroutine_was_granted_is_given_back_before_it_is_gone, fixture)
{
    while (coop_budget::try_consume()) { // so that the next does not take the short cut
    }
    for (unsigned i = 0; i != coop_budget::size; ++i)
        BOOST_TEST_REQUIRE(coop_budget::try_consume());
    spawn();
    BOOST_CHECK_THROW(io.run(), no_luck);
    BOOST_TEST(frame_is_gone);
    BOOST_TEST(!touched_when_gone);
    BOOST_TEST(given_back == 1);
    BOOST_TEST(permits->available() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
