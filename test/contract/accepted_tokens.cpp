// SPDX-License-Identifier: BSL-1.0
// The signature of every initiating function is constrained: a type that is no completion token, or
// a handler with another signature, is rejected before the body.
#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;
using namespace std::chrono_literals;

struct no_token {};

// A handler for a result that no operation has.
struct other_handler {
    void operator()(no_token) const {}
};

template <class Call>
constexpr bool takes_tokens_only(Call)
{
    return std::is_invocable_v<Call, asio::deferred_t> && !std::is_invocable_v<Call, no_token> &&
           !std::is_invocable_v<Call, other_handler>;
}

template <class T>
T& any();
constexpr auto always = [] { return true; };
constexpr auto positive = [](const auto& n) { return n > 0; };
using work = decltype(std::declval<asio::steady_timer&>().async_wait(asio::deferred));

// Checks that a member function, called with a token t, accepts only completion tokens.
#define CHECK_TOKENS_ONLY(object, ...)                                                        \
    BOOST_TEST(takes_tokens_only([](auto t) -> decltype(void(any<object>().__VA_ARGS__)) {}), \
               #object "::" #__VA_ARGS__)

BOOST_AUTO_TEST_SUITE(accepted_tokens)

BOOST_AUTO_TEST_CASE(a_type_that_is_no_token_is_rejected_in_the_signature)
{
    CHECK_TOKENS_ONLY(ts::mutex, async_lock(t));
    CHECK_TOKENS_ONLY(ts::shared_mutex, async_lock(t));
    CHECK_TOKENS_ONLY(ts::shared_mutex, async_lock_shared(t));
    CHECK_TOKENS_ONLY(ts::shared_mutex, async_lock_upgrade(t));
    CHECK_TOKENS_ONLY(ts::shared_mutex,
                      async_upgrade(any<ts::shared_mutex::upgrade_lock_type>(), t));
    CHECK_TOKENS_ONLY(ts::shared_mutex,
                      async_upgrade(any<ts::shared_mutex::shared_lock_type>(), t));
    CHECK_TOKENS_ONLY(ts::semaphore, async_acquire(t));
    CHECK_TOKENS_ONLY(ts::semaphore, async_acquire(2, t));
    CHECK_TOKENS_ONLY(ts::event, async_wait(t));
    CHECK_TOKENS_ONLY(ts::auto_reset_event, async_wait(t));
    CHECK_TOKENS_ONLY(ts::condition, async_wait(any<ts::mutex::lock_type>(), t));
    CHECK_TOKENS_ONLY(ts::condition, async_wait(any<ts::mutex::lock_type>(), always, t));
    CHECK_TOKENS_ONLY(ts::latch, async_wait(t));
    CHECK_TOKENS_ONLY(ts::latch, async_arrive_and_wait(t));
    CHECK_TOKENS_ONLY(ts::latch, async_arrive_and_wait(2, t));
    CHECK_TOKENS_ONLY(ts::counter, async_wait_zero(t));
    CHECK_TOKENS_ONLY(ts::counter, async_wait_at_least(1, t));
    CHECK_TOKENS_ONLY(ts::counter, async_wait_at_most(1, t));
    CHECK_TOKENS_ONLY(ts::counter, async_wait(positive, t));
    CHECK_TOKENS_ONLY(ts::barrier, async_arrive_and_wait(t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_push(1, t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_pop(t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_pop_n(2, t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_reserve(t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_join(t));
    CHECK_TOKENS_ONLY(ts::priority_queue<int>, async_push(1, 1, t));
    CHECK_TOKENS_ONLY(ts::broadcast<int>::receiver_type, async_receive(t));
    CHECK_TOKENS_ONLY(ts::watch<int>, async_wait_changed(0, t));
    CHECK_TOKENS_ONLY(ts::watch<int>, async_wait_for(positive, t));
    CHECK_TOKENS_ONLY(ts::oneshot_receiver<int>, async_receive(t));
    CHECK_TOKENS_ONLY(ts::oneshot_receiver<void>, async_receive(t));
    CHECK_TOKENS_ONLY(ts::oneshot_sender<int>, async_wait_receiver_gone(t));
    CHECK_TOKENS_ONLY(ts::bulkhead, async_acquire(t));
    CHECK_TOKENS_ONLY(ts::bulkhead, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::circuit_breaker, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::circuit_breaker, async_wait_state(ts::circuit_state::open, t));
    CHECK_TOKENS_ONLY(ts::keyed_circuit_breaker<int>, async_call(7, any<work>(), t));
    CHECK_TOKENS_ONLY(ts::rate_limiter, async_acquire(t));
    CHECK_TOKENS_ONLY(ts::rate_limiter, async_acquire(2, t));
    CHECK_TOKENS_ONLY(ts::rate_limiter, async_acquire(2, 1s, t));
    CHECK_TOKENS_ONLY(ts::rate_limiter, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::keyed_rate_limiter<int>, async_acquire(7, t));
    CHECK_TOKENS_ONLY(ts::keyed_rate_limiter<int>, async_acquire(7, 2, t));
    CHECK_TOKENS_ONLY(ts::keyed_rate_limiter<int>, async_acquire(7, 2, 1s, t));
    CHECK_TOKENS_ONLY(ts::keyed_rate_limiter<int>, async_call(7, any<work>(), t));
    CHECK_TOKENS_ONLY(ts::retry, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::hedge, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::timeout, async_call(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::queue<int>, async_reserve(2, t));
    CHECK_TOKENS_ONLY(ts::queue<int>::sender_type, async_push(1, t));
    CHECK_TOKENS_ONLY(ts::queue<int>::sender_type, async_reserve(2, t));
    CHECK_TOKENS_ONLY(ts::queue<int>::receiver_type, async_pop(t));
    CHECK_TOKENS_ONLY(ts::queue<int>::receiver_type, async_pop_n(2, t));
    CHECK_TOKENS_ONLY(ts::cancellation_source, async_wait(t));
    CHECK_TOKENS_ONLY(ts::task_group<int>, async_join(t));
    CHECK_TOKENS_ONLY(ts::task_group<>, async_spawn(any<work>(), t));
    CHECK_TOKENS_ONLY(ts::task_group<int>, async_next(t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_submit(1, t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_run(1, t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_idle(t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_shutdown(t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_shutdown(ts::shutdown_mode::drain, t));
    CHECK_TOKENS_ONLY(ts::worker_pool<int>, async_shutdown(ts::shutdown_mode::drain, 1s, t));
    CHECK_TOKENS_ONLY(ts::guarded<int>, async_lock(t));
    CHECK_TOKENS_ONLY(ts::shared_guarded<int>, async_lock(t));
    CHECK_TOKENS_ONLY(ts::shared_guarded<int>, async_read(t));
    CHECK_TOKENS_ONLY(ts::keyed_mutex<int>, async_lock(1, t));
    CHECK_TOKENS_ONLY(ts::keyed_mutex<int>, async_lock_all(any<std::vector<int>>(), t));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
