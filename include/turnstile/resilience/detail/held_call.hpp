// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/inspecting_handler.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/resilience/call_outcome.hpp>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// What the end of a call says where the options name no rule: cancelled and refused calls say
// nothing.
TURNSTILE_EXPORT call_outcome usual_outcome(const failure& f) noexcept;

// The same by the user's rule for failed calls, if there is one.
inline call_outcome classify_failure(const failure& f,
                                     const std::function<call_outcome(const failure&)>& rule)
{
    if (!f)
        return call_outcome::success;
    return rule ? rule(f) : usual_outcome(f);
}

// One admitted call of a breaker or bulkhead, whose end is to be reported to its state, once;
// if nobody does, as ignored. The pointer is a counted one where the state does not count its calls
// itself, as a breaker's does.
template <class Pointer, class Ticket>
class held_call {
public:
    held_call() noexcept = default;
    held_call(Pointer state, const Ticket& ticket) noexcept
        : ticket_(ticket), state_(std::move(state))
    {
    }
    // admit(ticket) writes the ticket, and gives the state or null.
    template <class Admit>
        requires std::is_invocable_r_v<Pointer, Admit&, Ticket&>
    explicit held_call(Admit admit) noexcept : state_(admit(ticket_)) {}
    held_call(held_call&& other) noexcept
        : ticket_(other.ticket_), state_(std::exchange(other.state_, nullptr))
    {
    }
    held_call& operator=(held_call&& other) noexcept
    {
        held_call(std::move(other)).swap(*this);
        return *this;
    }
    ~held_call() { report(call_outcome::ignored); }

    explicit operator bool() const noexcept { return state_ != nullptr; }
    const Pointer& state() const noexcept { return state_; }
    const Ticket& ticket() const noexcept { return ticket_; }

    void swap(held_call& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(ticket_, other.ticket_);
    }

    void report(call_outcome outcome) noexcept
    {
        if (const Pointer state = std::exchange(state_, nullptr))
            state->report(ticket_, outcome);
    }

private:
    Ticket ticket_; // first: it is written while the state is found
    Pointer state_ = nullptr;
};

// Says that the rule of the object's options holds.
struct usual_classifier {};

// Observes a call, and reports its end.
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
        if (call_.state()->listeners().is_closed())
            return call_outcome::ignored; // its object is gone, and with it what a rule may use
        try {
            if constexpr (std::is_same_v<Classify, usual_classifier>)
                return classify_failure(traits::failure_of(results), call_.state()->rule());
            else
                return std::apply(classify_, results);
        } catch (...) {
            return call_outcome::failure;
        }
    }

    Call call_;
    [[no_unique_address]] Classify classify_;
};

// Makes the handler of a call, which reports its end.
template <class Signature, class Call, class Classify>
struct report_end {
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
