// SPDX-License-Identifier: BSL-1.0
// A cancellation source: one call cancels any number of operations, from any thread.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/bind_token.hpp>
#include <turnstile/work/detail/cancellation_source_state.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Cancels the operations that are bound to it, and its children.
///
/// `asio::cancellation_signal` has one slot, and must be emitted on the executor of its operation.
/// A source has any number of operations, each with a signal of its own that the source emits on
/// the operation's executor.
///
/// @par Thread safety
/// Any thread may call any function of a `cancellation_source`, at any time: also while operations
/// are started, complete or are destroyed. The execution contexts of the bound operations must
/// exist until `cancel` returns. By Asio's rule, an operation whose executor is run by several
/// threads needs a strand; the waits of Turnstile's primitives do not. A
/// `local::cancellation_source` and all operations that are bound to it are confined to one strand.
/// @par Destruction
/// Every waiter of `async_wait` completes with `operation_aborted`, and a pending `cancel_after`
/// has no effect. The operations that are bound to the source, and its children, are not cancelled:
/// they continue. They are still cancelled by a parent of the source.
template <class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_cancellation_source
    : public detail::io_object<Executor, Threading,
                               detail::cancellation_source_state<Threading, Clock>> {
    using state_type = detail::cancellation_source_state<Threading, Clock>;
    using base = detail::io_object<Executor, Threading, state_type>;
    using scope_type = detail::cancellation_scope<Threading>;

public:
    using typename base::executor_type;
    using clock_type = Clock;

    template <class Other>
    struct rebind_executor {
        using other = basic_cancellation_source<Other, Threading, Clock>;
    };

    /// Makes a source. Handlers without an associated executor run on `executor`.
    explicit basic_cancellation_source(const std::type_identity_t<Executor>& executor)
        : basic_cancellation_source(executor, scope_type::make())
    {
    }

    /// Equivalent to `basic_cancellation_source(context.get_executor())`.
    template <detail::execution_context Context>
    explicit basic_cancellation_source(Context& context)
        : basic_cancellation_source(context.get_executor())
    {
    }

    ~basic_cancellation_source() { this->state_pointer()->disconnect(); }

    /// Adapts a completion token: the operation that is started with it is cancelled by the source
    /// or by its own cancellation slot, whichever comes first.
    ///
    /// The signal is emitted on the operation's executor: the associated executor of its handler,
    /// else the executor of the I/O object, else that of the source. An operation that is started
    /// on a cancelled source completes with `operation_aborted`, by a post, and has not started: a
    /// coroutine that is passed to `co_spawn` does not run. An operation whose completion signature
    /// does not start with an `error_code` or an `exception_ptr`, or has further arguments that are
    /// not default constructible, cannot report this; it is started, and the signal is emitted at
    /// once. So adapters such as `as_tuple` go inside: `bind(as_tuple(token))`.
    ///
    /// The token may be used after the destruction of the source. Binding and unbinding take
    /// constant time, and the memory for it is kept by the source and reused.
    ///
    /// @param token The completion token, by default that of the source's executor.
    template <class Token = default_token_t<Executor>>
    [[nodiscard]] auto bind(Token&& token = Token()) const
    {
        return detail::bind_token<Executor, Threading, std::decay_t<Token>>{
            this->executor(), this->state().scope(), std::forward<Token>(token)};
    }

    /// Makes a source that is cancelled with this one, or alone. A child of a cancelled source is
    /// cancelled at once. The child may outlive this source.
    [[nodiscard]] basic_cancellation_source child() const
    {
        return basic_cancellation_source(this->executor(), scope_type::make(this->state().scope()));
    }

    /// Cancels all bound operations and all children, and grants all waiters. No handler runs
    /// inside this call, and no memory is needed, unless the executor of an operation needs it for
    /// a post.
    ///
    /// A later call with a further type of cancellation reaches the operations that have not
    /// completed: `cancel(cancellation_type::total)`, and `cancel()` at the end of a deadline.
    ///
    /// @param type The type that the operations receive. `none` has no effect.
    void cancel(asio::cancellation_type_t type = asio::cancellation_type::terminal) noexcept
    {
        this->state().scope()->cancel(detail::cancellation_bits(type));
    }

    /// Cancels the source after a time. A second call replaces the first. The largest duration
    /// removes the deadline. The source has one timer, which is outstanding work until it expires,
    /// the source is cancelled with that type, or the source is destroyed. So a source may be
    /// cancelled with `total` first, and with `terminal` at the end of a deadline.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `delay` is negative; `not_enough_memory` if there is no memory
    /// for the timer. The call has changed nothing then.
    template <class Rep, class Period>
    void cancel_after(std::chrono::duration<Rep, Period> delay,
                      asio::cancellation_type_t type = asio::cancellation_type::terminal)
    {
        error_code ec;
        cancel_after(delay, type, ec);
        detail::throw_if(ec, ec == errc::invalid_argument
                                 ? "cancellation_source: delay must not be negative"
                                 : "cancellation_source: cancel_after");
    }
    /// Equivalent to `cancel_after(delay, type)`, and reports an error by `ec`.
    template <class Rep, class Period>
    void cancel_after(std::chrono::duration<Rep, Period> delay, asio::cancellation_type_t type,
                      error_code& ec) noexcept
    {
        ec = {};
        const nanoseconds after = saturating_nanoseconds(delay);
        if (!(delay >= delay.zero())) // also if it is not a number
            ec = errc::invalid_argument;
        else if (after == nanoseconds::zero())
            cancel(type);
        else if (!this->state().cancel_after(after, detail::cancellation_bits(type)))
            ec = make_error_code(boost::system::errc::not_enough_memory);
    }

    /// Whether the source is cancelled. A cancelled source stays cancelled.
    [[nodiscard]] bool is_cancelled() const noexcept
    {
        return this->state().scope()->is_cancelled();
    }

    /// Waits until the source is cancelled.
    ///
    /// @par Completes when
    /// the source or a parent is cancelled; at once if it is.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the source was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the source's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing, so a cancelled wait loses nothing.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = void;
        using waiter_type = detail::waiter;
        static constexpr detail::request_traits traits{.refundable = true};

        basic_cancellation_source* source;

        const Executor& executor() const noexcept { return source->executor(); }
        state_type& state() const noexcept { return source->state(); }
        detail::wait_decision try_now() const noexcept
        {
            return source->state().is_set() ? detail::wait_decision::granted()
                                            : detail::wait_decision::pending();
        }
        void give_back() const noexcept {}
        void prepare(detail::waiter&) const noexcept {}
    };

    basic_cancellation_source(const Executor& executor, typename scope_type::pointer scope)
        : base(executor, std::move(scope))
    {
        this->state_pointer()->connect();
    }
};

/// The cancellation source for any thread and any executor.
using cancellation_source = basic_cancellation_source<>;

namespace local {

/// The cancellation source for one strand, on which all bound operations run as well.
using cancellation_source = basic_cancellation_source<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
