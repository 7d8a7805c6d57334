// SPDX-License-Identifier: BSL-1.0
// One timer for all deadlines of a state, tested on a state whose waiters only wait for a time.
#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/policies.hpp"
#include "kit/run.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/timed_state.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <tuple>

namespace {

namespace asio = boost::asio;
namespace detail = turnstile::detail;
using kit::completion;
using turnstile::nanoseconds;
using namespace std::chrono_literals;

struct deadline_waiter : detail::waiter {
    using waiter::waiter;
    nanoseconds due{};
};

// Each waiter is granted at a time of its own.
template <class Threading, class Clock>
class deadline_state final : public detail::timed_state<Threading, Clock> {
public:
    using detail::timed_state<Threading, Clock>::timed_state;

    int wakes = 0;

private:
    bool admit(detail::waiter& w) noexcept override
    {
        this->queue_.push_back(w);
        plan();
        return false;
    }
    void reconsider(detail::ready_list&) noexcept override { plan(); }
    void take_back(detail::waiter&, detail::ready_list&) noexcept override {}
    void wake(detail::ready_list& ready) noexcept override
    {
        ++wakes;
        const nanoseconds now = this->now();
        for (auto it = this->queue_.begin(); it != this->queue_.end();) {
            auto& w = static_cast<deadline_waiter&>(*it++);
            if (w.due > now)
                continue;
            w.detail::waiter_hook::unlink();
            w.grant();
            ready.push_back(w);
        }
        plan();
    }
    void plan() noexcept
    {
        std::optional<nanoseconds> first;
        for (const detail::waiter& w : this->queue_) {
            const nanoseconds due = static_cast<const deadline_waiter&>(w).due;
            first = first ? std::min(*first, due) : due;
        }
        if (first)
            this->wake_at(*first);
        else
            this->sleep();
    }
};

template <class Threading, class Clock>
class deadlines
    : public detail::io_object<asio::any_io_executor, Threading, deadline_state<Threading, Clock>> {
    using base =
        detail::io_object<asio::any_io_executor, Threading, deadline_state<Threading, Clock>>;

    struct request {
        using executor_type = asio::any_io_executor;
        using threading = Threading;
        using result_type = void;
        using waiter_type = deadline_waiter;
        static constexpr detail::request_traits traits{.refundable = true};

        deadlines* owner;
        nanoseconds due;

        const executor_type& executor() const noexcept { return owner->executor(); }
        deadline_state<Threading, Clock>& state() const noexcept { return owner->state(); }
        detail::wait_decision try_now() const noexcept { return detail::wait_decision::pending(); }
        void give_back() const noexcept {}
        void prepare(deadline_waiter& w) const noexcept { w.due = due; }
    };

public:
    explicit deadlines(const asio::any_io_executor& executor) : base(executor) {}

    template <class Token>
    auto async_wait_for(nanoseconds delay, Token&& token)
    {
        return detail::start_wait(request{this, this->state().now() + delay},
                                  std::forward<Token>(token));
    }
    int wakes() const { return this->state().wakes; }
};

const auto nothing = [] {};
constexpr auto terminal = asio::cancellation_type::terminal;

template <class P>
using manual_deadlines = deadlines<P, kit::manual_clock>;

void pass(asio::io_context& io, nanoseconds time) { kit::manual_clock::advance(io, time); }

BOOST_AUTO_TEST_SUITE(timed_state)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_is_granted_at_its_time_and_not_before, P, kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d(io.get_executor());
    completion c;
    d.async_wait_for(10ns, c.handler(nothing));
    BOOST_TEST(kit::poll_leaves_work(io));
    pass(io, 9ns);
    BOOST_TEST(!c.done());
    pass(io, 1ns);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_earlier_deadline_is_served_first_whenever_it_was_set, P,
                              kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d(io.get_executor());
    completion late;
    completion early;
    completion middle;
    d.async_wait_for(30ns, late.handler(nothing));
    d.async_wait_for(10ns, early.handler(nothing));
    d.async_wait_for(20ns, middle.handler(nothing));
    pass(io, 10ns);
    BOOST_TEST(early.succeeded());
    BOOST_TEST(!middle.done());
    pass(io, 10ns);
    BOOST_TEST(middle.succeeded());
    pass(io, 9ns);
    BOOST_TEST(!late.done());
    pass(io, 1ns);
    BOOST_TEST(late.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_later_deadline_does_not_move_the_timer, P, kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d(io.get_executor());
    completion first;
    completion second;
    asio::cancellation_signal signal;
    d.async_wait_for(10ns, asio::bind_cancellation_slot(signal.slot(), first.handler(nothing)));
    d.async_wait_for(20ns, second.handler(nothing));
    signal.emit(terminal);
    pass(io, 0ns);
    BOOST_TEST(first.aborted());
    BOOST_TEST(d.wakes() == 0); // the timer is left to expire
    pass(io, 10ns);
    BOOST_TEST(d.wakes() == 1);
    BOOST_TEST(!second.done());
    pass(io, 10ns);
    BOOST_TEST(second.succeeded());
    BOOST_TEST(d.wakes() == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_waiters_the_timer_is_no_outstanding_work, P, kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d(io.get_executor());
    completion c;
    asio::cancellation_signal signal;
    for (int round = 0; round != 3; ++round) {
        c = completion();
        d.async_wait_for(1h, asio::bind_cancellation_slot(signal.slot(), c.handler(nothing)));
        signal.emit(terminal);
        kit::run(io); // returns
        BOOST_TEST(c.aborted());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_whose_cancellation_is_pending_is_armed_again, P,
                              kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d(io.get_executor());
    completion gone;
    completion next;
    asio::cancellation_signal signal;
    d.async_wait_for(10ns, asio::bind_cancellation_slot(signal.slot(), gone.handler(nothing)));
    signal.emit(terminal);
    d.async_wait_for(5ns, next.handler(nothing));
    pass(io, 4ns);
    BOOST_TEST(!next.done());
    pass(io, 1ns);
    BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroying_the_object_cancels_the_timer, P, kit::policies)
{
    kit::drained_context io;
    std::optional<manual_deadlines<P>> d(std::in_place, io.get_executor());
    completion c;
    d->async_wait_for(1h, c.handler(nothing));
    d.reset();
    kit::run(io); // returns
    BOOST_TEST(c.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_object_may_outlive_its_context, P, kit::policies)
{
    std::optional<asio::io_context> io(std::in_place);
    manual_deadlines<P> d(io->get_executor());
    completion waiting(kit::dropping::is_expected);
    d.async_wait_for(1h, waiting.handler(nothing));
    io.reset();
    BOOST_TEST(waiting.dropped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(
    the_context_may_be_destroyed_while_a_cancellation_of_the_timer_is_pending, P, kit::policies)
{
    std::optional<asio::io_context> io(std::in_place);
    completion c(kit::dropping::is_expected);
    std::optional<manual_deadlines<P>> d(std::in_place, io->get_executor());
    d->async_wait_for(1h, c.handler(nothing));
    d.reset();
    io.reset();
    BOOST_TEST(c.dropped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_own_the_object, P, kit::policies)
{
    std::optional<asio::io_context> io(std::in_place);
    completion c(kit::dropping::is_expected);
    {
        auto d = std::make_shared<manual_deadlines<P>>(io->get_executor());
        d->async_wait_for(1h, c.handler([d] {}));
    }
    io.reset();
    BOOST_TEST(c.dropped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_timer_completes_inside_the_strand_of_a_confined_object, P,
                              kit::policies)
{
    kit::drained_context io;
    manual_deadlines<P> d{asio::any_io_executor(asio::make_strand(io))};
    completion c;
    d.async_wait_for(10ns, c.handler(nothing));
    pass(io, 9ns);
    BOOST_TEST(!c.done());
    pass(io, 1ns);
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_waiter_is_granted_on_a_thread_pool_by_the_steady_clock, P,
                              kit::policies)
{
    asio::thread_pool pool(1);
    deadlines<P, turnstile::default_clock> d(pool.get_executor());
    completion c;
    asio::post(pool, [&] { d.async_wait_for(1us, c.handler(nothing)); });
    pool.join();
    BOOST_TEST(c.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_scripted_clock_grants_inside_the_call_that_moves_it, P,
                              kit::policies)
{
    kit::drained_context io;
    deadlines<P, kit::scripted_clock> d(io.get_executor());
    completion first;
    completion gone;
    completion second;
    asio::cancellation_signal signal;
    d.async_wait_for(10ns, first.handler(nothing));
    d.async_wait_for(5ns, asio::bind_cancellation_slot(signal.slot(), gone.handler(nothing)));
    d.async_wait_for(20ns, second.handler(nothing));
    signal.emit(terminal);
    kit::scripted_clock::advance(10ns);
    kit::poll_leaves_work(io);
    kit::scripted_clock::advance(0ns); // a confined object posts to its strand first
    BOOST_TEST(first.succeeded());
    BOOST_TEST(gone.aborted());
    BOOST_TEST(!second.done());
    kit::scripted_clock::advance(10ns);
    kit::run(io);
    BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
