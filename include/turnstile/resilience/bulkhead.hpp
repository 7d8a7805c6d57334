// SPDX-License-Identifier: BSL-1.0
// A bulkhead limits the number of concurrent calls, the number of waiters, and their waiting time.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/resilience/bulkhead_options.hpp>
#include <turnstile/resilience/detail/admitted_call.hpp>
#include <turnstile/resilience/detail/bulkhead_state.hpp>
#include <turnstile/resilience/detail/coroutine_call.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A place in a bulkhead. It is given back when the permit is destroyed. An adaptive limit learns
/// from the time for which the place was held, and from the reported outcome; it does not learn
/// from a call without a report.
///
/// Movable, not copyable.
///
/// @par Thread safety
/// The permit itself: none. Giving it back counts as a call to the bulkhead.
/// @par Destruction
/// A permit may outlive its bulkhead.
template <class State>
class [[nodiscard]] bulkhead_permit {
    using call_type = detail::admitted_call<State*, detail::bulkhead_ticket>;

public:
    /// An empty permit.
    bulkhead_permit() noexcept = default;
    // Used by the bulkhead.
    bulkhead_permit(State* state, const detail::bulkhead_ticket& ticket) noexcept
        : call_(state, ticket)
    {
    }
    bulkhead_permit(bulkhead_permit&&) noexcept = default;
    /// Releases the place of this permit, and takes over the other permit.
    bulkhead_permit& operator=(bulkhead_permit&& other) noexcept
    {
        bulkhead_permit taken(std::move(other));
        taken.call_.swap(call_);
        return *this;
    }
    ~bulkhead_permit() { release(); }

    /// Whether the permit holds a place.
    explicit operator bool() const noexcept { return static_cast<bool>(call_); }

    /// Gives the place back and reports the outcome of the call; does nothing if the permit is
    /// empty. Listeners may be called inside.
    void report(call_outcome outcome) noexcept { call_.report(outcome); }
    /// Equivalent to `report(call_outcome::success)`.
    void success() noexcept { report(call_outcome::success); }
    /// Equivalent to `report(call_outcome::failure)`: an adaptive limit may be too high.
    void failure() noexcept { report(call_outcome::failure); }
    /// Equivalent to `report(call_outcome::ignored)`: an adaptive limit does not learn from it.
    void ignore() noexcept { report(call_outcome::ignored); }
    /// Gives the place back without a report, as the destructor does. Equivalent to `ignore()`.
    void release() noexcept { ignore(); }

private:
    call_type call_;
};

/// Limits the number of calls that are inside at a time, so that one slow service does not occupy
/// all resources. Up to `max_waiters` further calls wait, each for up to `max_wait`.
///
/// The limit is fixed; `resize` changes it. With `aimd_options` or `gradient_options` it adapts to
/// the duration and the outcome of the calls.
///
/// Listeners receive each change of the limit as a `bulkhead_event`.
///
/// @par Thread safety
/// As the threading policy says. The completion of a call counts as a call to the bulkhead.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Outstanding calls continue; their outcome is
/// not reported to classifiers or listeners. Permits may outlive the bulkhead.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_bulkhead : public detail::listening_object<Executor, Threading,
                                                       detail::bulkhead_state<Threading, Clock>> {
    using state_type = detail::bulkhead_state<Threading, Clock>;
    using base = detail::listening_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    /// The clock that measures waiting times, and the duration of calls for an adaptive limit.
    using clock_type = Clock;
    /// The permit of `async_acquire` and `try_acquire`.
    using permit_type = bulkhead_permit<state_type>;

    /// The same type of bulkhead for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_bulkhead<Other, Threading, Clock>;
    };

    /// An empty bulkhead.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule.
    explicit basic_bulkhead(const std::type_identity_t<Executor>& executor,
                            const bulkhead_options& options = {})
        : base(executor, options)
    {
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context>
    explicit basic_bulkhead(Context& context, const bulkhead_options& options = {})
        : basic_bulkhead(context.get_executor(), options)
    {
    }

    /// Waits for a place.
    ///
    /// @par Completes when
    /// fewer than `limit()` calls are inside, and no earlier waiter is queued.
    /// @par Completion signature
    /// `void(error_code, permit_type)`
    /// @par Errors
    /// `errc::rejected` if `max_waiters` operations wait already; `errc::timed_out` after
    /// `max_wait`; `operation_aborted` if cancelled, or if the bulkhead is destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the bulkhead's.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds nothing: a place that was
    /// already granted goes to the next waiter.
    /// @par Fairness
    /// FIFO.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return detail::start_wait(request{&this->executor(), &this->state()},
                                  std::forward<Token>(token));
    }

    /// Acquires a place if one is free and no operation waits. Returns an empty permit otherwise.
    [[nodiscard]] permit_type try_acquire() noexcept
    {
        state_type& state = this->state();
        return state.try_acquire(1, state_type::one_handle) ? permit_type(&state, state.ticket())
                                                            : permit_type();
    }

    /// Equivalent to `try_acquire()`; sets `ec` to `errc::rejected` if the permit is empty, and
    /// clears it otherwise.
    [[nodiscard]] permit_type try_acquire(error_code& ec) noexcept
    {
        permit_type permit = try_acquire();
        ec = permit ? error_code() : make_error_code(errc::rejected);
        return permit;
    }

    /// Waits for a place, runs an operation, and gives the place back when the operation completes.
    ///
    /// @par Completes when
    /// the operation completes, or the wait for a place fails.
    /// @par Completion signature
    /// The operation's. Its results pass through unchanged.
    /// @par Errors
    /// The operation's, including an exception that its initiation throws; the errors of
    /// `async_acquire`, as a `rejection` where failures are exceptions.
    /// @par Executor
    /// The handler's associated executor, by default the bulkhead's.
    /// @par Per-operation cancellation
    /// While it waits: terminal, partial and total. After that, the operation's.
    /// @par Cancel safety
    /// While it waits, as `async_acquire`. After that, the operation's.
    /// @par Fairness
    /// FIFO.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!detail::classifier_for<Token, Op>)
    auto async_call(Op&& op, Token&& token = Token())
    {
        return call(std::forward<Op>(op), detail::default_classifier(), std::forward<Token>(token));
    }

    /// Equivalent to `async_call(op, token)` with a classifier for this operation.
    ///
    /// @param classify `classify(results...)` returns the `call_outcome` that an adaptive limit
    /// learns from. If it throws, the call has failed.
    template <operation Op, detail::classifier_for<Op> Classify,
              operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(Op&& op, Classify classify, Token&& token = Token())
    {
        return call(std::forward<Op>(op), std::move(classify), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// Changes a fixed limit. If it grows, waiters are granted the new places. If it shrinks, the
    /// calls inside continue, and no further call enters until enough of them have completed.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `limit` is not in [1, `limit_bound`), or the limit is adaptive;
    /// the limit is then unchanged.
    void resize(std::uint64_t limit, error_code& ec) noexcept
    {
        ec =
            this->state().resize_to(limit) ? error_code() : make_error_code(errc::invalid_argument);
    }

    /// Equivalent to `resize(limit, ec)`, but throws `system_error`.
    void resize(std::uint64_t limit)
    {
        error_code ec;
        resize(limit, ec);
        detail::throw_if(ec, "bulkhead::resize");
    }

    /// The maximum number of calls inside, at this time.
    [[nodiscard]] std::uint64_t limit() const noexcept { return this->state().maximum(); }
    /// The figures of the bulkhead at this time.
    [[nodiscard]] bulkhead_stats stats() const noexcept { return this->state().stats(); }

private:
    using request = detail::bulkhead_request<Executor, state_type, Threading, permit_type>;

    template <class Op, class Classify, class Token>
    auto call(Op&& op, Classify classify, Token&& token)
    {
        using admitted = detail::admitted_call<state_type*, detail::bulkhead_ticket>;
        using call_request = detail::bulkhead_request<Executor, state_type, Threading, admitted>;
        using wrap = detail::report_on_completion<operation_signature_t<Op>, admitted, Classify>;
        const call_request place{&this->executor(), &this->state()};
        if constexpr (detail::called_in_coroutine<Op, Token>)
            return detail::call_in_coroutine(detail::call_frame(), place,
                                             std::decay_t<Op>(std::forward<Op>(op)),
                                             std::move(classify));
        else
            return detail::call_when_permitted(
                place, std::forward<Op>(op), std::forward<Token>(token), wrap{std::move(classify)});
    }
};

/// A bulkhead for any thread and any executor.
using bulkhead = basic_bulkhead<>;

namespace local {

/// A bulkhead for one strand: no atomics, no locks.
using bulkhead = basic_bulkhead<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
