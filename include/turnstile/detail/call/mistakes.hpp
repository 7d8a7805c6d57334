// SPDX-License-Identifier: BSL-1.0
// Compile-time messages for frequent mistakes in calls. Each function that takes an operation has a
// second overload for arguments that are not operations, constrained by `mistaken_operation`. This
// overload returns explain_operation(), whose static_assert explains the mistake.
//
// Invariant: the message is the first error of the compiler, because the function itself is not
// instantiated, and a mistaken call causes no further error. The tests in test/mistakes/ check
// both.
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/numbered_operation.hpp>

#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// False, in a form that a static_assert evaluates only when the template is instantiated.
template <class T>
constexpr bool is_never = false;

// An argument for a duration whose unit was forgotten.
template <class T>
concept number_without_unit = std::is_arithmetic_v<T>;

// The call is not a probe by the concept `stage_for`, which only tests whether it would compile.
template <class... Ts>
concept no_probe = (!std::same_as<std::decay_t<Ts>, signature_probe> && ...);

// An argument that is not an operation, in a call with the further arguments `Rest`.
template <class Op, class... Rest>
concept mistaken_operation = !operation<Op> && no_probe<Rest...>;

// An argument that is not an operation that can be started several times.
template <class Op, class... Rest>
concept mistaken_repetition =
    !repeatable_operation<Op> && !takes_attempt_number<Op> && no_probe<Rest...>;

// The result of a mistaken call. It converts to every type, so that its use is no further error.
struct any_result {
    template <class T>
    operator T() const;
};
using mistaken_call = asio::awaitable<any_result>;

template <class Op>
auto explain_operation()
{
    using type = std::remove_cvref_t<Op>;
    constexpr bool is_awaitable = awaitable_traits<type>::is_awaitable;
    constexpr bool is_function = !is_awaitable && std::is_invocable_v<type>;
    if constexpr (operation<Op>)
        static_assert(is_never<Op>,
                      "Retry and hedge start the operation several times, so it must be "
                      "copyable. Hold members that cannot be copied in a std::shared_ptr.");
    else if constexpr (is_awaitable)
        static_assert(is_never<Op>, "Pass the function, not what it returns: f instead of f(). The "
                                    "called component starts the operation.");
    else if constexpr (is_function)
        static_assert(is_never<Op>, "An operation without parameters must return an "
                                    "asio::awaitable.");
    else
        static_assert(is_never<Op>,
                      "This argument is not an operation. Pass a function that returns an "
                      "asio::awaitable, the result of an async_ function with asio::deferred, or a "
                      "lambda that takes a completion token and passes it to an async_ function.");
    return mistaken_call();
}

// The return type of a mistaken call with a timeout token. With as_tuple it is the tuple, so that a
// structured binding of the result is no further error.
template <class Signature>
struct timed_call {
    using type = mistaken_call;
};
template <class R, class Tuple>
struct timed_call<R(Tuple)> {
    using type = asio::awaitable<Tuple>;
};

// Explains a timeout for a completion signature that cannot report a failure.
template <class Signature>
auto explain_timeout()
{
    static_assert(is_never<Signature>,
                  "The completion signature of an operation with a timeout must start with an "
                  "error_code or an exception_ptr, which reports the timeout. Adapters such as "
                  "as_tuple and redirect_error go inside: timeout_after(1s, as_tuple(token)).");
    return typename timed_call<Signature>::type();
}

} // namespace turnstile::inline v0_1::detail
