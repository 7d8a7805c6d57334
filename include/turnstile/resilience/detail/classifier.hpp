// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <concepts>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

template <class F, class Signature>
struct classifies : std::false_type {
};
// It is asked in the way a handler is called: one that is generic may not compile for anything
// else, even to find out that it is no classifier.
template <class F, class... Results>
    requires std::invocable<F, Results...>
struct classifies<F, void(Results...)>
    : std::is_same<std::invoke_result_t<F, Results...>, call_outcome> {};

// What makes a call_outcome of an operation's results, and so is no completion token.
template <class F, class Op>
concept classifier_for = classifies<std::decay_t<F>, operation_signature_t<Op>>::value;

} // namespace turnstile::inline v0_1::detail
