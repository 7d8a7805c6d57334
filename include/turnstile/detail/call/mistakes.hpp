// SPDX-License-Identifier: BSL-1.0
//
// Mistakes in calls, explained. A function that takes an operation has a second overload for an
// argument that is none, constrained by `mistaken_operation`; it returns `explain_operation`, whose
// static_assert is then the first error, and nothing of the real function is instantiated.
#pragma once

#include <turnstile/core/operation.hpp>

#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

// False, but only when it is used.
template <class T>
constexpr bool is_never = false;

// What is given for a duration by those who forget its unit.
template <class T>
concept number_without_unit = std::is_arithmetic_v<T>;

// `stage_for` asks whether a call is possible: that is no mistake.
template <class... Ts>
concept no_probe = (!std::same_as<std::decay_t<Ts>, signature_probe> && ...);

// No operation, given by a caller with the other arguments `Rest`.
template <class Op, class... Rest>
concept mistaken_operation = !operation<Op> && no_probe<Rest...>;

// The same where the operation is started several times.
template <class Op, class... Rest>
concept mistaken_repetition = !repeatable_operation<Op> && no_probe<Rest...>;

// The result of a mistaken call: what is done with it is no further error.
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
                      "A retry or hedge starts the operation several times: it must be copyable. "
                      "Let it hold by std::shared_ptr what cannot be copied.");
    else if constexpr (is_awaitable)
        static_assert(is_never<Op>, "Pass the function, not what it returns: f instead of f(). The "
                                    "operation is started by the call that gets it.");
    else if constexpr (is_function)
        static_assert(is_never<Op>, "A function without parameters must return an asio::awaitable "
                                    "to be an operation.");
    else
        static_assert(is_never<Op>,
                      "This is not an operation: pass a function that returns an asio::awaitable, "
                      "what asio::deferred yields, or a lambda that passes a completion token on.");
    return mistaken_call();
}

// What a call with the token returns: with as_tuple the tuple, so that it can be taken apart.
template <class Signature>
struct timed_call {
    using type = mistaken_call;
};
template <class R, class Tuple>
struct timed_call<R(Tuple)> {
    using type = asio::awaitable<Tuple>;
};

// For a signature that leaves a timeout no error to report itself by.
template <class Signature>
auto explain_timeout()
{
    static_assert(is_never<Signature>,
                  "A timeout needs a way to report it: the operation's signature must start with "
                  "an error_code or an exception_ptr. as_tuple and redirect_error go inside: "
                  "timeout_after(1s, as_tuple(token)).");
    return typename timed_call<Signature>::type();
}

} // namespace turnstile::inline v0_1::detail
