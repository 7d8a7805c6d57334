// SPDX-License-Identifier: BSL-1.0
#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"
#include "kit/joining_thread.hpp"
#include "kit/run.hpp"

#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/inspecting_handler.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace detail = turnstile::detail;
using kit::completion;
using turnstile::errc;
using turnstile::error_code;
using turnstile::failure;
using turnstile::system_error;

template <class Op>
using signature = turnstile::operation_signature_t<Op>;
template <class A, class B>
constexpr bool same = std::is_same_v<A, B>;

// --- Operations and their signatures.

using deferred_timer = decltype(std::declval<asio::steady_timer&>().async_wait(asio::deferred));
using deferred_acquire =
    decltype(std::declval<turnstile::semaphore&>().async_acquire(asio::deferred));
using permit = turnstile::semaphore::permit_type;

struct wait_of {
    asio::steady_timer& timer;
    template <class Token>
    auto operator()(Token token) const
    {
        return timer.async_wait(std::move(token));
    }
};
const auto number = []() -> asio::awaitable<int> { co_return 1; };
const auto nothing = []() -> asio::awaitable<void, asio::io_context::executor_type> { co_return; };
struct moves_only {
    std::unique_ptr<int> value;
    template <class Token>
    auto operator()(Token&& token) &&
    {
        return asio::async_initiate<Token, void(int)>([](auto) {}, token);
    }
};

static_assert(same<signature<deferred_timer>, void(error_code)>);
static_assert(same<signature<const deferred_timer&>, void(error_code)>);
static_assert(same<signature<deferred_acquire>, void(error_code, permit)>);
static_assert(same<signature<decltype(number)>, void(std::exception_ptr, int)>);
static_assert(same<signature<decltype(nothing)>, void(std::exception_ptr)>);
static_assert(same<signature<moves_only>, void(int)>);
static_assert(turnstile::repeatable_operation<deferred_timer>);
static_assert(turnstile::repeatable_operation<wait_of>);
static_assert(turnstile::repeatable_operation<decltype(number)>);
static_assert(turnstile::repeatable_operation<asio::awaitable<int> (&)()>); // a plain function
static_assert(turnstile::operation<moves_only>);
static_assert(!turnstile::repeatable_operation<moves_only>);
static_assert(!turnstile::operation<int>);
static_assert(!turnstile::operation<decltype([] {})>);
static_assert(!turnstile::operation<decltype([](auto) { return 1; })>);
static_assert(!turnstile::operation<asio::awaitable<int>>);

struct pass_through {
    template <class Op, class Token>
    auto async_call(Op op, Token&& token)
    {
        return std::move(op)(std::forward<Token>(token));
    }
};
struct changes_the_signature {
    template <class Op, class Token>
    auto async_call(Op, Token&& token)
    {
        return asio::async_initiate<Token, void(int)>([](auto) {}, token);
    }
};
static_assert(turnstile::stage_for<pass_through, deferred_timer>);
static_assert(!turnstile::stage_for<changes_the_signature, deferred_timer>);
static_assert(!turnstile::stage_for<int, deferred_timer>);

// --- Results.

static_assert(detail::result_traits<void(error_code, int)>::can_make_failure);
static_assert(detail::result_traits<void(const error_code&)>::reports_failure);
static_assert(
    detail::result_traits<void(error_code, std::reference_wrapper<int>)>::reports_failure);
static_assert(
    !detail::result_traits<void(error_code, std::reference_wrapper<int>)>::can_make_failure);
static_assert(!detail::result_traits<void()>::reports_failure);
static_assert(!detail::result_traits<void(int, error_code)>::reports_failure);

static_assert(std::is_convertible_v<errc, failure>);
static_assert(!std::is_convertible_v<int, failure>);

const auto throws = [](auto exception) { return failure(std::make_exception_ptr(exception)); };
const error_code no_memory = make_error_code(boost::system::errc::not_enough_memory);
const error_code refused = asio::error::connection_refused;
const error_code aborted = asio::error::operation_aborted;

BOOST_AUTO_TEST_SUITE(operation)

BOOST_AUTO_TEST_CASE(a_failure_has_a_code_whatever_its_form)
{
    BOOST_TEST(!failure());
    BOOST_TEST(!failure(error_code()));
    BOOST_TEST(!failure(std::exception_ptr()));
    BOOST_TEST(failure().code() == error_code());
    BOOST_TEST(failure(refused).code() == refused);
    BOOST_TEST(failure(errc::timed_out).code() == errc::timed_out);
    BOOST_TEST(failure(asio::error::operation_aborted).is_cancelled());
    BOOST_TEST(!failure(refused).exception());
    BOOST_TEST(throws(system_error(refused)).code() == refused);
    BOOST_TEST(throws(std::system_error(std::make_error_code(std::errc::io_error))).code() ==
               boost::system::errc::io_error);
    BOOST_TEST(throws(std::bad_alloc()).code() == no_memory);
    BOOST_TEST(throws(std::runtime_error("it broke")).code() == errc::operation_failed);
    BOOST_TEST(throws(42).code() == errc::operation_failed);
    BOOST_TEST(bool(throws(42).exception()));
}

BOOST_AUTO_TEST_CASE(a_cancellation_is_recognised_in_every_form)
{
    BOOST_TEST(failure(aborted).is_cancelled());
    BOOST_TEST(throws(system_error(aborted)).is_cancelled());
    BOOST_TEST(throws(std::system_error(std::make_error_code(std::errc::operation_canceled)))
                   .is_cancelled());
    BOOST_TEST(!failure().is_cancelled());
    BOOST_TEST(!failure(refused).is_cancelled());
    BOOST_TEST(!throws(42).is_cancelled());
}

BOOST_AUTO_TEST_CASE(a_result_is_read_by_its_signature)
{
    using with_code = detail::result_traits<void(error_code, int)>;
    using with_std_code = detail::result_traits<void(std::error_code)>;
    using with_exception = detail::result_traits<void(std::exception_ptr, int)>;
    using plain = detail::result_traits<void(int)>;
    BOOST_TEST(with_code::failure_of({refused, 1}).code() == refused);
    BOOST_TEST(!with_code::failure_of({error_code(), 1}));
    BOOST_TEST(with_std_code::failure_of({std::make_error_code(std::errc::io_error)}).code() ==
               boost::system::errc::io_error);
    BOOST_TEST(!with_exception::failure_of({nullptr, 1}));
    BOOST_TEST(with_exception::failure_of({throws(system_error(refused)).exception(), 1}).code() ==
               refused);
    BOOST_TEST(!plain::failure_of({7}));
}

BOOST_AUTO_TEST_CASE(a_failure_is_written_in_the_form_of_the_signature)
{
    using with_code = detail::result_traits<void(error_code, int)>;
    using with_exception = detail::result_traits<void(std::exception_ptr, int)>;
    BOOST_TEST(std::get<0>(with_code::from_error(refused)) == refused);
    BOOST_TEST(std::get<1>(with_code::from_error(refused)) == 0);
    BOOST_TEST(std::get<0>(with_code::from_failure(throws(system_error(refused)))) == refused);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(std::get<0>(with_exception::from_error(refused))),
                          system_error, [](const auto& e) { return e.code() == refused; });
    BOOST_CHECK_THROW(std::rethrow_exception(std::get<0>(
                          with_exception::from_failure(throws(std::runtime_error(""))))),
                      std::runtime_error);
    with_code::tuple result{refused, 5};
    with_code::replace_failure(result, error_code(errc::timed_out));
    BOOST_TEST(std::get<0>(result) == errc::timed_out);
    BOOST_TEST(std::get<1>(result) == 5);
}

// --- Starting an operation.

BOOST_AUTO_TEST_CASE(both_kinds_of_operation_start_with_a_handler)
{
    kit::drained_context io;
    asio::steady_timer timer(io, asio::steady_timer::time_point::min());
    kit::completion waited;
    detail::start(timer.async_wait(asio::deferred), io.get_executor(), waited.handler([] {}));
    int value = 0;
    detail::start(number, io.get_executor(), [&](std::exception_ptr e, int v) {
        BOOST_TEST(!e);
        value = v;
    });
    bool ran = false;
    kit::completion waited_again;
    detail::start(wait_of{timer}, io.get_executor(), waited_again.handler([] {}));
    detail::start(nothing, asio::make_strand(io.get_executor()),
                  [&](std::exception_ptr e) { ran = !e; });
    kit::run(io);
    BOOST_TEST(waited.succeeded());
    BOOST_TEST(waited_again.succeeded());
    BOOST_TEST(value == 1);
    BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_initiation_is_delivered_later_as_a_failure)
{
    kit::drained_context io;
    kit::completion failed;
    kit::completion out_of_memory;
    const auto failing = [](auto exception) {
        return [exception](auto token) {
            return asio::async_initiate<decltype(token), void(error_code, int)>(
                [exception](auto handler) {
                    [[maybe_unused]] const auto consumed = std::move(handler);
                    throw exception;
                },
                token);
        };
    };
    detail::start(failing(system_error(refused)), io.get_executor(), failed.handler([](int) {}));
    detail::start(failing(std::bad_alloc()), io.get_executor(), out_of_memory.handler([](int) {}));
    BOOST_TEST(!failed.done());
    kit::run(io);
    BOOST_TEST(failed.error() == refused);
    BOOST_TEST(out_of_memory.error() == no_memory);
}

BOOST_AUTO_TEST_CASE(a_coroutine_function_that_throws_when_called_has_failed)
{
    kit::drained_context io;
    std::exception_ptr error;
    const auto throwing = []() -> asio::awaitable<int> {
        throw std::runtime_error("no coroutine");
    };
    detail::start(throwing, io.get_executor(), [&](std::exception_ptr e, int) { error = e; });
    kit::run(io);
    BOOST_CHECK_THROW(std::rethrow_exception(error), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(a_signature_without_a_place_for_failure_throws_it)
{
    kit::drained_context io;
    const auto failing = [](auto token) {
        return asio::async_initiate<decltype(token), void(int)>(
            [](auto) { throw std::runtime_error("nowhere to go"); }, token);
    };
    BOOST_CHECK_THROW(detail::start(failing, io.get_executor(), [](int) {}), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(the_associations_of_the_handler_are_kept)
{
    kit::drained_context io;
    kit::allocation_plan plan;
    asio::cancellation_signal signal;
    auto strand = asio::make_strand(io);
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    std::optional<std::size_t> live;
    bool in_strand = false;
    error_code error;
    detail::start(
        timer.async_wait(asio::deferred), io.get_executor(),
        asio::bind_cancellation_slot(
            signal.slot(), asio::bind_allocator(kit::failing_allocator<char>(plan),
                                                asio::bind_executor(strand, [&](error_code ec) {
                                                    error = ec;
                                                    in_strand = strand.running_in_this_thread();
                                                    live = plan.live();
                                                }))));
    BOOST_TEST(plan.live() == 2U); // the handler's block, and the wait of the timer
    kit::poll_leaves_work(io);
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(error == aborted);
    BOOST_TEST(in_strand);
    BOOST_TEST((live == 0U));
}

BOOST_AUTO_TEST_CASE(a_moved_from_handler_is_not_queried_for_its_allocator)
{
    struct handler {
        using allocator_type = std::allocator<void>;
        explicit handler(bool& called) : done(&called) {}
        handler(handler&& other) noexcept : done(std::exchange(other.done, nullptr)) {}
        void operator()(error_code) { *done = true; }
        allocator_type get_allocator() const noexcept
        {
            BOOST_TEST(done != nullptr);
            return {};
        }
        bool* done;
    };
    kit::drained_context io;
    bool called = false;
    asio::steady_timer timer(io, asio::steady_timer::time_point::min());
    detail::start(timer.async_wait(asio::deferred), io.get_executor(), handler(called));
    kit::run(io);
    BOOST_TEST(called);
}

// An operation `void(error_code)` with the given initiation.
template <class Initiation>
auto operation_of(Initiation initiation)
{
    return [initiation](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(initiation, token);
    };
}

BOOST_AUTO_TEST_CASE(
    the_handlers_memory_is_free_when_the_handler_runs_before_the_initiation_returns)
{
    kit::drained_context io;
    kit::allocation_plan plan;
    std::optional<std::size_t> live;
    const auto over_at_once = operation_of([](auto handler) {
        kit::joining_thread([h = std::move(handler)]() mutable { std::move(h)(error_code()); });
    });
    detail::start(over_at_once, io.get_executor(),
                  asio::bind_allocator(kit::failing_allocator<char>(plan),
                                       [&](error_code) { live = plan.live(); }));
    BOOST_TEST((live == 0U));
    BOOST_TEST(plan.allocated == 1U);
}

BOOST_AUTO_TEST_CASE(an_initiation_that_passes_the_handler_on_and_then_throws_completes_once)
{
    kit::drained_context io;
    const auto late = operation_of([&](auto handler) {
        asio::post(io, [h = std::move(handler)]() mutable { std::move(h)(refused); });
        throw std::bad_alloc();
    });
    const auto over = operation_of([](auto handler) {
        kit::joining_thread([h = std::move(handler)]() mutable { std::move(h)(refused); });
        throw std::bad_alloc();
    });
    completion later;
    completion at_once;
    detail::start(late, io.get_executor(), later.handler([] {}));
    detail::start(over, io.get_executor(), at_once.handler([] {}));
    BOOST_TEST(!later.done());
    kit::run(io);
    BOOST_TEST(later.error() == refused);
    BOOST_TEST(at_once.error() == refused);
}

BOOST_AUTO_TEST_CASE(a_handler_destroyed_by_another_thread_is_called_with_the_failure)
{
    kit::drained_context io;
    const auto failing = operation_of([](auto handler) {
        kit::joining_thread([h = std::move(handler)] {});
        throw std::bad_alloc();
    });
    completion c;
    detail::start(failing, io.get_executor(), c.handler([] {}));
    kit::run(io);
    BOOST_TEST(c.error() == no_memory);
}

BOOST_AUTO_TEST_CASE(a_handler_that_the_initiation_destroys_is_dropped)
{
    kit::drained_context io;
    kit::allocation_plan plan;
    completion c(kit::dropping::is_expected);
    detail::start(operation_of([](auto) {}), io.get_executor(),
                  asio::bind_allocator(kit::failing_allocator<char>(plan), c.handler([] {})));
    BOOST_TEST(c.dropped());
    BOOST_TEST(plan.live() == 0U);
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_handler_inside_the_initiation_is_no_failure_of_the_operation)
{
    kit::drained_context io;
    int calls = 0;
    const auto immediate = operation_of([](auto handler) { std::move(handler)(error_code()); });
    BOOST_CHECK_THROW(detail::start(immediate, io.get_executor(),
                                    [&](error_code) {
                                        ++calls;
                                        throw std::runtime_error("mine");
                                    }),
                      std::runtime_error);
    kit::run(io);
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_start_without_memory_inside_a_completion_calls_the_handler)
{
    kit::drained_context io;
    kit::allocation_plan plan;
    plan.fail = true;
    completion c;
    asio::steady_timer timer(io);
    detail::start_in_completion(
        timer.async_wait(asio::deferred), io.get_executor(),
        asio::bind_allocator(kit::failing_allocator<char>(plan), c.handler([] {})));
    BOOST_TEST(c.error() == no_memory);
}

BOOST_AUTO_TEST_CASE(an_observer_sees_the_failure_and_is_destroyed_before_the_handler_runs)
{
    kit::drained_context io;
    asio::cancellation_signal signal;
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    auto permit = std::make_shared<int>();
    std::weak_ptr<int> held = permit;
    failure seen;
    kit::completion done;
    auto handler = [&](error_code ec) {
        BOOST_TEST(held.expired());
        done.handler([] {})(ec);
    };
    detail::start(timer.async_wait(asio::deferred), io.get_executor(),
                  detail::inspect_result<void(error_code)>(
                      asio::bind_cancellation_slot(signal.slot(), handler),
                      [&, p = std::move(permit)](const failure& f) { seen = f; }));
    kit::poll_leaves_work(io);
    BOOST_TEST(!held.expired());
    signal.emit(asio::cancellation_type::terminal);
    kit::run(io);
    BOOST_TEST(done.aborted());
    BOOST_TEST(seen.is_cancelled());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
