// SPDX-License-Identifier: BSL-1.0
// Results whose move constructor throws, at each of the moves on their way to the caller.
#include "kit/failing_allocator.hpp"
#include "kit/manual_clock.hpp"
#include "kit/run.hpp"

#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/hedge.hpp>
#include <turnstile/resilience/retry.hpp>
#include <turnstile/resilience/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using kit::manual_clock;
using turnstile::error_code;
using any = asio::any_io_executor;

struct move_failed : std::runtime_error {
    move_failed() : std::runtime_error("a move failed") {}
};

int moves_left = -1; // before one throws; negative: none throws

class fragile {
public:
    fragile() = default;
    explicit fragile(int v) : value(v) {}
    fragile(fragile&& other) : value(other.value) { count_move(); }
    fragile& operator=(fragile&& other)
    {
        value = other.value;
        count_move();
        return *this;
    }

    int value = 0;

private:
    static void count_move()
    {
        if (moves_left == 0) {
            moves_left = -1;
            throw move_failed();
        }
        moves_left -= moves_left > 0 ? 1 : 0;
    }
};

// A result that cannot be assigned.
class constant : public fragile {
public:
    constant() = default;
    explicit constant(int v) : fragile(v) {}
    constant(constant&&) = default;
    constant& operator=(constant&&) = delete;
};

// A result without a default constructor: no failure can be made with it.
class bare : public fragile {
public:
    explicit bare(int v) : fragile(v) {}
    bare(bare&&) = default;
    bare& operator=(bare&&) = default;
};

// Completes with a new value, on the handler's executor or elsewhere. Its cancellation handler must
// not be called after its completion.
template <class Value>
struct operation {
    asio::io_context* io;
    bool elsewhere;

    template <class Token>
    auto operator()(Token&& token) const
    {
        return asio::async_initiate<Token, void(error_code, Value)>(
            [](auto handler, asio::io_context* context, bool away) {
                auto over = std::make_shared<bool>(false);
                auto slot = asio::get_associated_cancellation_slot(handler);
                if (slot.is_connected())
                    slot.assign([over](asio::cancellation_type) { BOOST_TEST(!*over); });
                const auto own = asio::get_associated_executor(handler);
                auto complete = [h = std::move(handler), over]() mutable {
                    *over = true;
                    std::move(h)(error_code(), Value(7));
                };
                if (away)
                    asio::post(*context, std::move(complete));
                else
                    asio::post(own, std::move(complete));
            },
            token, io, elsewhere);
    }
};

// Counts the invocations of a handler, and its destruction without one.
struct ends {
    int called = 0;
    int dropped = 0;
    error_code ec;
};

template <class Value>
class counting_handler {
public:
    explicit counting_handler(ends& e) : ends_(&e) {}
    counting_handler(counting_handler&& other) noexcept : ends_(std::exchange(other.ends_, nullptr))
    {
    }
    ~counting_handler()
    {
        if (ends_)
            ++ends_->dropped;
    }

    void operator()(error_code ec, Value&& v)
    {
        ends* const e = std::exchange(ends_, nullptr);
        ++e->called;
        e->ec = ec;
        if (!ec)
            BOOST_TEST(v.value == 7);
    }

private:
    ends* ends_;
};

// Whichever move throws, the handler is invoked once, or destroyed while the exception leaves
// run(); no timer is left for the context to wait for.
template <class Value, class Call>
void sweep(const std::string& name, Call call, bool is_always_called)
{
    for (const bool elsewhere : {false, true}) {
        bool threw = true;
        for (int k = 0; threw; ++k) {
            BOOST_TEST_REQUIRE(k < 100);
            BOOST_TEST_CONTEXT(name << ", move " << k << (elsewhere ? ", elsewhere" : ""))
            {
                manual_clock::reset();
                ends result;
                kit::drained_context io;
                moves_left = k;
                call(io, operation<Value>{&io, elsewhere}, counting_handler<Value>(result));
                bool escaped = false;
                for (bool again = true; again;) {
                    again = false;
                    try {
                        io.restart();
                        io.poll();
                    } catch (const move_failed&) {
                        again = escaped = true;
                    }
                }
                threw = moves_left < 0;
                moves_left = -1;
                BOOST_TEST(result.called + result.dropped == 1);
                BOOST_TEST(result.dropped == (escaped ? 1 : 0));
                if (is_always_called)
                    BOOST_TEST(result.called == 1);
                if (result.called && threw)
                    BOOST_TEST(!!result.ec);
                if (!threw)
                    BOOST_TEST(!result.ec);
                BOOST_TEST(io.stopped());
            }
        }
    }
}

template <class Value>
void sweep_all(bool is_always_called)
{
    const auto run = [&](const std::string& name, auto call) {
        sweep<Value>(name, call, is_always_called);
    };
    run("timeout", [](asio::io_context& io, auto op, auto handler) {
        turnstile::basic_timeout<any, manual_clock>(io, 1h).async_call(op, std::move(handler));
    });
    if constexpr (std::is_default_constructible_v<Value>) {
        run("retry", [](asio::io_context& io, auto op, auto handler) {
            const turnstile::retry_options options{.max_attempts = 1};
            turnstile::async_retry<manual_clock>(io.get_executor(), options, op,
                                                 std::move(handler));
        });
        run("retry with a timeout", [](asio::io_context& io, auto op, auto handler) {
            const turnstile::retry_options options{.max_attempts = 1, .attempt_timeout = 1h};
            turnstile::async_retry<manual_clock>(io.get_executor(), options, op,
                                                 std::move(handler));
        });
        run("hedge", [](asio::io_context& io, auto op, auto handler) {
            const turnstile::hedge_options options{.delay = 1h, .max_attempts = 1};
            turnstile::async_hedge<manual_clock>(io.get_executor(), options, op,
                                                 std::move(handler));
        });
    }
}

BOOST_AUTO_TEST_SUITE(throwing_results)

BOOST_AUTO_TEST_CASE(a_move_that_throws_is_a_failure_of_the_operation) { sweep_all<fragile>(true); }

BOOST_AUTO_TEST_CASE(results_need_not_be_assignable) { sweep_all<constant>(true); }

BOOST_AUTO_TEST_CASE(where_no_failure_can_be_made_the_exception_leaves_the_context)
{
    sweep_all<bare>(false);
}

struct fragile_classifier {
    fragile moved;
    turnstile::call_outcome operator()(const error_code&) const noexcept
    {
        return turnstile::call_outcome::success;
    }
};

BOOST_AUTO_TEST_CASE(memory_is_freed_if_the_move_of_a_classifier_throws)
{
    kit::allocation_plan memory;
    asio::io_context io;
    turnstile::circuit_breaker breaker(io);
    const auto op = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&](auto handler) {
                asio::post(io, [h = std::move(handler)]() mutable {
                    moves_left = 0;
                    std::move(h)(error_code());
                });
            },
            token);
    };
    breaker.async_call(
        op, fragile_classifier(),
        asio::bind_allocator(kit::failing_allocator<int>(memory), [](const error_code&) {}));
    BOOST_TEST(memory.live() == 1U);
    BOOST_CHECK_THROW(io.run(), move_failed);
    BOOST_TEST(memory.live() == 0U);
    moves_left = -1;
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
