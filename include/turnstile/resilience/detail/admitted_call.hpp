// SPDX-License-Identifier: BSL-1.0
//
// One call that a circuit breaker or a bulkhead has admitted, from its start to the report of its
// outcome. basic_circuit_breaker and basic_bulkhead use it in their permits and in async_call:
// `admitted_call` holds the ticket, `call_reporter` classifies the results of the operation, and
// `report_on_completion` attaches the reporter to the caller's completion handler.
//
// Invariant: the outcome of an admitted call is reported to the state exactly once. A call that is
// destroyed without a report is reported as ignored.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/inspecting_handler.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <concepts>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The outcome of a call where the options have no `classify`: cancelled and refused calls are
// ignored.
TURNSTILE_EXPORT call_outcome default_outcome(const failure& f) noexcept;

// The outcome of a call by the options' `classify`, which may be empty.
inline call_outcome classify_failure(const failure& f,
                                     const std::function<call_outcome(const failure&)>& classify)
{
    if (!f)
        return call_outcome::success;
    return classify ? classify(f) : default_outcome(f);
}

template <class F, class Signature>
struct classifies : std::false_type {
};
// The arguments have the value category in which a handler receives them: the body of a generic
// handler may not compile for any other, and this test instantiates it.
template <class F, class... Results>
    requires std::invocable<F, Results...>
struct classifies<F, void(Results...)>
    : std::is_same<std::invoke_result_t<F, Results...>, call_outcome> {};

// A function that classifies the results of the operation; it is not a completion token.
template <class F, class Op>
concept classifier_for = classifies<std::decay_t<F>, operation_signature_t<Op>>::value;

// Selects the options' `classify` in place of a classifier for one operation.
struct default_classifier {};

// An admitted call: the state that admitted it, and its ticket. Pointer is a pointer to the state,
// which stays alive because it counts its admitted calls, or a pointer that owns it.
template <class Pointer, class Ticket>
class admitted_call {
public:
    admitted_call() noexcept = default;
    admitted_call(Pointer state, const Ticket& ticket) noexcept
        : ticket_(ticket), state_(std::move(state))
    {
    }
    // admit(ticket) either writes the ticket and returns the state, or returns null.
    template <class Admit>
        requires std::is_invocable_r_v<Pointer, Admit&, Ticket&>
    explicit admitted_call(Admit admit) noexcept : state_(admit(ticket_)) {}
    admitted_call(admitted_call&& other) noexcept
        : ticket_(other.ticket_), state_(std::exchange(other.state_, Pointer()))
    {
    }
    admitted_call& operator=(admitted_call&& other) noexcept
    {
        admitted_call(std::move(other)).swap(*this);
        return *this;
    }
    ~admitted_call() { report(call_outcome::ignored); }

    explicit operator bool() const noexcept { return state_ != nullptr; }
    const Pointer& state() const noexcept { return state_; }
    const Ticket& ticket() const noexcept { return ticket_; }

    void swap(admitted_call& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(ticket_, other.ticket_);
    }

    void report(call_outcome outcome) noexcept
    {
        if (const Pointer state = std::exchange(state_, Pointer()))
            state->report(ticket_, outcome);
    }

private:
    Ticket ticket_; // before state_, whose initialiser writes it
    Pointer state_ = nullptr;
};

// Classifies the results of an admitted call, and reports the outcome.
template <class Signature, class Call, class Classify>
class call_reporter {
    using traits = result_traits<Signature>;

public:
    call_reporter(Call call, Classify classify)
        : call_(std::move(call)), classify_(std::move(classify))
    {
    }

    void operator()(const typename traits::tuple& results) noexcept
    {
        call_.report(outcome(results));
    }

private:
    call_outcome outcome(const typename traits::tuple& results) noexcept
    {
        // The object is destroyed; objects that its classifier refers to may be, too.
        if (call_.state()->listeners().is_closed())
            return call_outcome::ignored;
        try {
            if constexpr (std::is_same_v<Classify, default_classifier>)
                return classify_failure(traits::failure_of(results), call_.state()->classify());
            else
                return std::apply(classify_, results);
        } catch (...) {
            return call_outcome::failure;
        }
    }

    Call call_;
    [[no_unique_address]] Classify classify_;
};

// Makes the completion handler of an admitted call: it reports the outcome, then invokes the
// caller's handler.
template <class Signature, class Call, class Classify>
struct report_on_completion {
    Classify classify;

    template <class Handler>
    auto operator()(Handler handler, Call call)
    {
        using reporter = call_reporter<Signature, Call, Classify>;
        return inspect_result<Signature>(std::move(handler),
                                         reporter(std::move(call), std::move(classify)));
    }
};

} // namespace turnstile::inline v0_1::detail
