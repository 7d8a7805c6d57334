// SPDX-License-Identifier: BSL-1.0
// A bulkhead: so many at a time, so many may wait, and not for longer than that.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/adaptive_limit.hpp>
#include <turnstile/resilience/detail/bulkhead_call.hpp>
#include <turnstile/resilience/detail/bulkhead_state.hpp>
#include <turnstile/resilience/detail/classifier.hpp>
#include <turnstile/resilience/detail/held_call.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A place in a bulkhead, given back when it goes out of scope. With an adaptive limit, how
/// long it was held and how it was given back say whether the limit is right.
///
/// Movable, not copyable. It may outlive its bulkhead. Not itself thread safe.
template <class State>
class [[nodiscard]] bulkhead_permit {
    using held_type = detail::held_call<State*, detail::bulkhead_ticket>;

public:
    /// Holds nothing.
    bulkhead_permit() noexcept = default;
    /// For the bulkhead.
    bulkhead_permit(State* state, const detail::bulkhead_ticket& ticket) noexcept
        : call_(state, ticket)
    {
    }
    bulkhead_permit(bulkhead_permit&&) noexcept = default;
    /// Gives back what it holds, then takes over the other's.
    bulkhead_permit& operator=(bulkhead_permit&& other) noexcept
    {
        bulkhead_permit taken(std::move(other));
        taken.call_.swap(call_);
        return *this;
    }
    ~bulkhead_permit() { release(); }

    /// Whether it holds a place.
    explicit operator bool() const noexcept { return static_cast<bool>(call_); }

    /// Gives the place back: the call went well. Does nothing if there is none.
    void release() noexcept { report(call_outcome::success); }
    /// Gives it back: the call was dropped, so an adaptive limit may be too high.
    void drop() noexcept { report(call_outcome::failure); }
    /// Gives it back, and an adaptive limit learns nothing from it.
    void ignore() noexcept { report(call_outcome::ignored); }
    void report(call_outcome outcome) noexcept { call_.report(outcome); }

private:
    held_type call_;
};

/// Limits how many calls are out at a time, so that one slow service does not take up
/// everything. Others wait in line, as many as `max_queue` allows, for up to `max_wait`.
///
/// The limit is fixed, can be changed while in use, or with `aimd_options` or
/// `gradient_options` finds its own size from how long calls take and how they end.
///
/// Fairness: strict FIFO, and `try_acquire` fails while others wait.
/// Listeners: of every change of the limit, as `limit_change`.
/// Destruction: every waiter completes with `operation_aborted`; calls that are out go on,
/// and nobody is told of their end. Permits may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_bulkhead : public detail::listening_object<Executor, Threading,
                                                       detail::bulkhead_state<Threading, Clock>> {
    using state_type = detail::bulkhead_state<Threading, Clock>;
    using base = detail::listening_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    using clock_type = Clock;
    using permit_type = bulkhead_permit<state_type>;

    template <class Other>
    struct rebind_executor {
        using other = basic_bulkhead<Other, Threading, Clock>;
    };

    /// An empty bulkhead. Throws `system_error` with `errc::invalid_argument` if an option is
    /// out of its range.
    explicit basic_bulkhead(const std::type_identity_t<Executor>& executor,
                            const bulkhead_options& options = {})
        : base(executor, options)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_bulkhead(Context& context, const bulkhead_options& options = {})
        : basic_bulkhead(context.get_executor(), options)
    {
    }

    /// Waits for a place.
    ///
    /// Completes when: fewer than the limit are inside, and everyone who asked before has
    /// been served.
    /// Signature: `void(error_code, permit_type)`.
    /// Errors: `errc::rejected` if too many wait already, `errc::timed_out` if it has waited
    /// for `max_wait`; `operation_aborted` if cancelled, or the bulkhead was destroyed.
    /// Executor: the handler's associated executor, by default the bulkhead's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it holds nothing; a place that had
    /// been granted already goes to the next waiter.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return detail::start_wait(request{&this->executor(), &this->state()},
                                  std::forward<Token>(token));
    }

    /// Takes a place if there is one and nobody waits; never waits itself. An empty permit
    /// means it did not. Thread safety: as the policy says.
    [[nodiscard]] permit_type try_acquire() noexcept
    {
        state_type& state = this->state();
        return state.try_acquire(1, state_type::one_handle) ? permit_type(&state, state.ticket())
                                                            : permit_type();
    }

    /// Waits for a place, makes the call, and gives the place back when it completes.
    ///
    /// Completes when: the operation does, or when it was not let in.
    /// Signature: that of the operation; its results pass unchanged.
    /// Errors: those of the operation, also what it throws while it is started; those of
    /// `async_acquire`, if it is not let in (as a `rejection` where failures are exceptions).
    /// Executor: the handler's associated executor, by default the bulkhead's own.
    /// Cancellation: while it waits terminal, partial and total; then the operation's.
    /// Cancel safety: as `async_acquire`, then the operation's.
    /// Fairness: FIFO. Thread safety: as the policy says; the call's end counts as a call of
    /// the bulkhead.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!detail::classifier_for<Token, Op>)
    auto async_call(Op&& op, Token&& token = Token())
    {
        return call(std::forward<Op>(op), detail::usual_classifier(), std::forward<Token>(token));
    }

    /// The same, with a rule for this operation: what `classify(results...)` gives is what an
    /// adaptive limit learns from. A `classify` that throws means failure.
    template <operation Op, detail::classifier_for<Op> Classify,
              operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Classify classify, Token&& token = Token())
    {
        return call(std::forward<Op>(op), std::move(classify), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// Changes a fixed limit. When it grows those who wait go in; when it shrinks those who
    /// are inside stay, and nobody goes in until enough have left.
    /// Errors: `errc::invalid_argument` if it is 0, or `limit_bound` or more, or the limit is
    /// adaptive; then nothing changes. Thread safety: as the policy says.
    void resize(std::uint64_t limit, error_code& ec) noexcept
    {
        ec =
            this->state().resize_to(limit) ? error_code() : make_error_code(errc::invalid_argument);
    }

    /// The same, throwing `system_error`.
    void resize(std::uint64_t limit)
    {
        error_code ec;
        resize(limit, ec);
        detail::throw_if(ec, "bulkhead::resize");
    }

    /// How many may be inside now.
    [[nodiscard]] std::uint64_t limit() const noexcept { return this->state().maximum(); }
    /// Its figures now, and what it has done so far. Thread safety: as the policy says.
    [[nodiscard]] bulkhead_stats stats() const noexcept { return this->state().stats(); }

private:
    using request = detail::bulkhead_request<Executor, state_type, Threading, permit_type>;

    template <class Op, class Classify, class Token>
    auto call(Op&& op, Classify classify, Token&& token)
    {
        using held = detail::held_call<state_type*, detail::bulkhead_ticket>;
        using call_request = detail::bulkhead_request<Executor, state_type, Threading, held>;
        using enter = detail::report_end<operation_signature_t<Op>, held, Classify>;
        return detail::call_when_permitted(call_request{&this->executor(), &this->state()},
                                           std::forward<Op>(op), std::forward<Token>(token),
                                           enter{std::move(classify)});
    }
};

/// The usual bulkhead: any thread, any executor.
using bulkhead = basic_bulkhead<>;

namespace local {

/// A bulkhead for one strand: no atomics, no locks.
using bulkhead = basic_bulkhead<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
