// SPDX-License-Identifier: BSL-1.0
// The concept wait_request, at compile time: a request satisfies it only if its members and its
// traits agree, so that a misspelt, missing or undeclared member does not compile.
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/wait_request.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>

namespace {

namespace asio = boost::asio;
namespace detail = turnstile::detail;
using detail::request_traits;
using detail::result_source;
using detail::waiter;
using turnstile::errc;

struct queue_of_waiters {
    void start(waiter& w);
};

// The required members, except one.
struct without_give_back {
    using executor_type = asio::any_io_executor;
    using threading = turnstile::thread_safe;
    using result_type = int;
    using waiter_type = waiter;
    static constexpr request_traits traits{};

    executor_type executor() const;
    queue_of_waiters& state() const;
    detail::wait_decision try_now();
    void prepare(waiter& w);
    int take_now();
};

struct complete : without_give_back {
    void give_back();
};
struct without_result : complete {
    using result_type = void;
};
struct with_another_decision : complete {
    bool try_now();
};
struct with_other_traits : complete {
    static constexpr bool traits = true;
};
struct immovable : complete {
    immovable(const immovable&) = delete;
};

static_assert(detail::wait_request<complete>);
static_assert(detail::wait_request<without_result>);
static_assert(!detail::wait_request<without_give_back>);
static_assert(!detail::wait_request<with_another_decision>);
static_assert(!detail::wait_request<with_other_traits>);
static_assert(!detail::wait_request<immovable>);
static_assert(!detail::wait_request<int>);

// --- The source of the result.

struct declares_result_of_waiter : complete {
    static constexpr request_traits traits{.result = result_source::waiter};
};
struct takes_from_waiter : declares_result_of_waiter {
    int take(waiter& w);
};
struct misspells_take : declares_result_of_waiter {
    int tak(waiter& w);
};
struct takes_from_waiter_undeclared : complete {
    int take(waiter& w);
};
struct takes_another_type : complete {
    std::unique_ptr<int> take_now();
};

static_assert(detail::wait_request<takes_from_waiter>);
static_assert(!detail::wait_request<declares_result_of_waiter>);
static_assert(!detail::wait_request<misspells_take>);
static_assert(!detail::wait_request<takes_from_waiter_undeclared>);
static_assert(!detail::wait_request<takes_another_type>);

struct declares_outcome : complete {
    static constexpr request_traits traits{.result = result_source::outcome};
};
struct concludes_only_now : declares_outcome {
    detail::wait_outcome<int> conclude_now();
};
struct concludes : concludes_only_now {
    detail::wait_outcome<int> conclude(waiter& w);
};
struct concludes_undeclared : complete {
    detail::wait_outcome<int> conclude(waiter& w);
};

static_assert(detail::wait_request<concludes>);
static_assert(!detail::wait_request<declares_outcome>);
static_assert(!detail::wait_request<concludes_only_now>);
static_assert(!detail::wait_request<concludes_undeclared>);

// --- The optional members: each is declared in the traits and present, or neither.

struct declares_refusal : complete {
    static constexpr request_traits traits{.explains_refusal = true};
};
struct explains_refusal : declares_refusal {
    std::exception_ptr refusal(errc code) const;
};
struct misspells_refusal : declares_refusal {
    std::exception_ptr refusl(errc code) const;
};
struct explains_refusal_undeclared : complete {
    std::exception_ptr refusal(errc code) const;
};

static_assert(detail::wait_request<explains_refusal>);
static_assert(!detail::wait_request<declares_refusal>);
static_assert(!detail::wait_request<misspells_refusal>);
static_assert(!detail::wait_request<explains_refusal_undeclared>);

struct declares_predicate : complete {
    static constexpr request_traits traits{.tests_predicate = true};
};
struct tests_predicate : declares_predicate {
    int& predicate_guard();
};
struct misspells_predicate_guard : declares_predicate {
    int& predicate_gard();
};
struct tests_predicate_undeclared : complete {
    int& predicate_guard();
};

static_assert(detail::wait_request<tests_predicate>);
static_assert(!detail::wait_request<misspells_predicate_guard>);
static_assert(!detail::wait_request<tests_predicate_undeclared>);

struct declares_supplies : complete {
    static constexpr request_traits traits{.needs_supplies = true};
};
struct needs_supplies : declares_supplies {
    int supplies();
};
struct misspells_supplies : declares_supplies {
    int suplies();
};
struct needs_supplies_undeclared : complete {
    int supplies();
};

static_assert(detail::wait_request<needs_supplies>);
static_assert(!detail::wait_request<misspells_supplies>);
static_assert(!detail::wait_request<needs_supplies_undeclared>);

struct timed_waiter : waiter {
    int retry_after;
};
struct declares_retry_after : complete {
    using waiter_type = timed_waiter;
    static constexpr request_traits traits{.reports_retry_after = true};
};
struct reports_retry_after : declares_retry_after {
    int retry_after;
};
struct misspells_retry_after : declares_retry_after {
    int retry_afer;
};
struct reports_retry_after_undeclared : complete {
    using waiter_type = timed_waiter;
    int retry_after;
};

static_assert(detail::wait_request<reports_retry_after>);
static_assert(!detail::wait_request<misspells_retry_after>);
static_assert(!detail::wait_request<reports_retry_after_undeclared>);

BOOST_AUTO_TEST_SUITE(wait_request)

BOOST_AUTO_TEST_CASE(a_request_satisfies_the_concept_only_if_members_and_traits_agree)
{
    BOOST_TEST(detail::wait_request<complete>); // the other checks are static assertions
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
