// SPDX-License-Identifier: BSL-1.0
// A request describes one wait to the mechanism: how to try it without waiting, what the waiter
// needs, and how to make the result. Every initiating function of a primitive makes a request
// and passes it to start_wait(). A request is a small movable object; once the operation exists
// it lives inside it.
//
// The optional parts are declared in `traits`, and the concept checks that declaration and
// members agree, in both directions: a misspelt member does not compile.
#pragma once

#include <turnstile/detail/wait/waiter.hpp>

#include <concepts>
#include <exception>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// The source of the result of a granted wait. A result of type void needs none.
enum class result_source {
    request, // take_now() makes it, for a fast path and for a waiter
    waiter,  // take_now() makes it for a fast path, take(waiter) for a waiter
    outcome, // conclude_now() and conclude(waiter) decide as late as the completion, and may fail
};

struct request_traits {
    // Dropping the result returns everything that the wait has taken.
    bool refundable = false;
    // A granted try_now() cannot be undone. It is called only for a coroutine that takes the short
    // cut; for all others the state decides, in admit(), after everything that can fail.
    bool irrevocable = false;
    // Where the result comes from.
    result_source result = result_source::request;
    // The request tests a user's predicate, predicate_guard(); a coroutine is thrown its exception.
    bool tests_predicate = false;
    // The outcome may come with an exception: conclude() and conclude_now() store it where
    // keep_exception_in() has said, and a coroutine is thrown it instead of the error code.
    bool reports_exception = false;
    // refusal(errc) makes the exception that a refused coroutine is thrown.
    bool explains_refusal = false;
    // supplies() makes an object with the memory that prepare() needs, while a coroutine can still
    // be thrown an exception. The object lives until the coroutine resumes.
    bool needs_supplies = false;
    // The waiter's `retry_after` is copied into the request's when the wait ends.
    bool reports_retry_after = false;
};

template <class R>
concept has_predicate_guard = requires(R& r)
{
    r.predicate_guard();
};
template <class R>
concept has_exception = requires(R& r, std::exception_ptr& thrown)
{
    r.keep_exception_in(thrown);
};
template <class R>
concept has_refusal = requires(const R& r)
{
    r.refusal(errc::closed);
};
template <class R>
concept has_supplies = requires(R& r)
{
    r.supplies();
};
template <class R>
concept has_retry_after = requires(R& r, typename R::waiter_type& w)
{
    r.retry_after = w.retry_after;
};
template <class R>
concept takes_from_waiter = requires(R& r, typename R::waiter_type& w)
{
    r.take(w);
};
template <class R>
concept takes_from_request = requires(R& r)
{
    requires std::same_as<decltype(r.take_now()), typename R::result_type>;
};
template <class R>
concept concludes_from_waiter = requires(R& r, typename R::waiter_type& w)
{
    r.conclude(w);
};
// A request whose outcome is known only when the wait completes.
template <class R>
concept concluding_request = requires(R& r, typename R::waiter_type& w)
{
    requires R::traits.result == result_source::outcome;
    requires std::same_as<decltype(r.conclude(w)), wait_outcome<typename R::result_type>>;
    requires std::same_as<decltype(r.conclude_now()), wait_outcome<typename R::result_type>>;
};

// The request has exactly the members that traits.result declares for making the result.
template <class R>
concept makes_its_result = concluding_request<R> ||
    (R::traits.result != result_source::outcome && !concludes_from_waiter<R> &&
     (std::is_void_v<typename R::result_type> ||
      (takes_from_request<R> &&
       takes_from_waiter<R> == (R::traits.result == result_source::waiter))));

template <class R>
concept declares_its_options =
    R::traits.tests_predicate == has_predicate_guard<R>&& R::traits.reports_exception ==
    has_exception<R>&& R::traits.explains_refusal == has_refusal<R>&& R::traits.needs_supplies ==
    has_supplies<R>&& R::traits.reports_retry_after == has_retry_after<R>;

template <class R>
concept wait_request = std::move_constructible<R> && requires(R& r, typename R::waiter_type& w)
{
    // The executor of the object, and its threading policy.
    typename R::executor_type;
    typename R::threading;
    // The value of a successful wait, or void.
    typename R::result_type;
    // The node that is queued: a waiter, or a type derived from it that adds the need.
    requires std::derived_from<typename R::waiter_type, waiter>;
    requires std::same_as<const request_traits, decltype(R::traits)>;

    // The executor on which the wait completes unless its handler has another.
    {
        r.executor()
        } -> std::convertible_to<typename R::executor_type>;
    // The wait_state that queues the waiter.
    r.state().start(w);
    // Tries without waiting; neither locks, as a rule, nor allocates.
    {
        r.try_now()
        } -> std::same_as<wait_decision>;
    // Undoes a granted try_now().
    r.give_back();
    // Writes the need into the node before it is queued.
    r.prepare(w);
} && makes_its_result<R> && declares_its_options<R>;

} // namespace turnstile::inline v0_1::detail
