// SPDX-License-Identifier: BSL-1.0
// A breaker, its permits, its waiters and the context may be destroyed in any order. The address
// sanitizer detects accesses to destroyed objects.
#include "kit/abandoned_context.hpp"
#include "kit/policies.hpp"

#include <turnstile/resilience/circuit_breaker.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using turnstile::call_outcome;
using turnstile::circuit_state;
using turnstile::error_code;

template <class Threading>
using breaker_of = turnstile::basic_circuit_breaker<asio::any_io_executor, Threading>;

enum class thing { breaker, permit, coroutine, context };

// A breaker, one of its permits, a coroutine that holds another one and waits for a state, and an
// outstanding call.
template <class Threading>
class scene {
public:
    explicit scene(bool half_open) : half_open_(half_open)
    {
        breaker_->add_listener([this](const turnstile::circuit_breaker_event&) { ++told_; });
        if (half_open) {
            breaker_->try_acquire().failure(); // opens the circuit; the open time ends at once
            BOOST_TEST((breaker_->state() == circuit_state::half_open));
        }
        permit_ = breaker_->try_acquire();
        BOOST_TEST(permit_.is_probe() == half_open);
        asio::co_spawn(*io_, wait(), asio::bind_cancellation_slot(cancel_.slot(), asio::detached));
        breaker_->async_call([this](auto token) { return timer_->async_wait(std::move(token)); },
                             [](error_code) {});
        io_->poll();
        told_ = asked_ = 0;
    }

    void end(thing which, std::optional<call_outcome> outcome)
    {
        switch (which) {
        case thing::breaker:
            breaker_.reset();
            break;
        case thing::permit:
            if (outcome)
                permit_.report(*outcome);
            permit_ = {};
            break;
        case thing::coroutine:
            if (io_) {
                cancel_.emit(asio::cancellation_type::terminal);
                io_->restart();
                io_->poll();
            }
            break;
        case thing::context:
            timer_.reset();
            io_.reset();
            break;
        }
    }

    bool has_breaker() const { return breaker_ != nullptr; }
    int told() const { return told_ + asked_; }

private:
    asio::awaitable<void> wait()
    {
        const auto held = breaker_->try_acquire();
        BOOST_TEST(static_cast<bool>(held));
        co_await breaker_->async_wait_state(circuit_state::open);
    }

    int told_ = 0;
    int asked_ = 0;
    bool half_open_;
    asio::cancellation_signal cancel_;
    std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
    std::unique_ptr<asio::steady_timer> timer_ =
        std::make_unique<asio::steady_timer>(*io_, asio::steady_timer::time_point::max());
    std::unique_ptr<breaker_of<Threading>> breaker_ = std::make_unique<breaker_of<Threading>>(
        *io_,
        turnstile::circuit_breaker_options{.window = turnstile::consecutive_failures{1},
                                           .probes = 3,
                                           .success_threshold = 3,
                                           .open_for = 0s,
                                           .break_duration = [this](const turnstile::break_info&) {
                                               ++asked_;
                                               return 0ns;
                                           }});
    typename breaker_of<Threading>::permit_type permit_;
};

BOOST_AUTO_TEST_SUITE(breaker_lifetime)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_order_of_destruction_is_defined, P, kit::policies)
{
    using outcomes = std::array<std::optional<call_outcome>, 4>;
    for (const bool half_open : {false, true}) {
        for (const auto outcome : outcomes{std::nullopt, call_outcome::success,
                                           call_outcome::failure, call_outcome::ignored}) {
            std::array order{thing::breaker, thing::permit, thing::coroutine, thing::context};
            do {
                scene<P> s(half_open);
                for (const thing next : order) {
                    const int before = s.told();
                    const bool had_breaker = s.has_breaker();
                    s.end(next, outcome);
                    if (!had_breaker)
                        BOOST_TEST(s.told() == before); // listener and generator may be destroyed
                }
            } while (std::next_permutation(order.begin(), order.end()));
        }
    }
}

// The order at the end of every main(): objects are destroyed in reverse order of their
// declaration, and the context destroys suspended coroutines.
BOOST_AUTO_TEST_CASE(a_coroutine_that_holds_a_permit_is_destroyed_with_its_context)
{
    asio::io_context io;
    turnstile::circuit_breaker breaker(io);
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    const auto holder = [&]() -> asio::awaitable<void> {
        const auto permit = breaker.try_acquire();
        co_await timer.async_wait(asio::use_awaitable);
    };
    asio::co_spawn(io, holder, asio::detached);
    io.poll();
}

BOOST_AUTO_TEST_CASE(a_permit_outlives_its_breaker)
{
    asio::io_context io;
    std::optional<turnstile::circuit_breaker> breaker(std::in_place, io);
    auto permit = breaker->try_acquire();
    auto moved = std::move(permit);
    breaker.reset();
    BOOST_TEST(static_cast<bool>(moved));
    moved.failure();
    BOOST_TEST(!moved);
}

// Destroying an object is not a call from the wrong strand.
BOOST_AUTO_TEST_CASE(a_handler_that_owns_a_local_breaker_is_destroyed_on_another_thread)
{
    kit::destroy_with_abandoned_context([](asio::io_context& io) {
        auto breaker = std::make_unique<turnstile::local::circuit_breaker>(io);
        BOOST_TEST(static_cast<bool>(breaker->try_acquire()));
        return breaker;
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
