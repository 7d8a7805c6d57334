// SPDX-License-Identifier: BSL-1.0
// A channel for one value: an answer, an error, or the news that none will come.
#pragma once

#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/channel/detail/oneshot_state.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

struct oneshot_sender_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.leave_sender();
    }
};

struct oneshot_receiver_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.leave_receiver();
    }
};

// A wait at one of the two ends.
template <class T, class Executor, class Threading, bool AtReceiver>
struct oneshot_request {
    using executor_type = Executor;
    using threading = Threading;
    using result_type = std::conditional_t<AtReceiver, T, void>;
    using waiter_type = oneshot_waiter;
    static constexpr request_traits traits{.refundable = !AtReceiver,
                                           .result = result_source::outcome};

    oneshot_block<T, Threading>* state_;
    const Executor* executor_;

    const Executor& executor() const noexcept { return *executor_; }
    oneshot_block<T, Threading>& state() const noexcept { return *state_; }
    wait_decision try_now() const noexcept
    {
        return AtReceiver ? state_->reserve() : state_->is_unwanted();
    }
    void give_back() const noexcept
    {
        if (AtReceiver)
            state_->give_back();
    }
    void prepare(oneshot_waiter& w) const noexcept { w.for_receiver_gone = !AtReceiver; }
    wait_outcome<result_type> conclude_now() const noexcept
    {
        if constexpr (AtReceiver)
            return state_->conclude();
        else
            return {state_->conclude_unwanted()};
    }
    wait_outcome<result_type> conclude(oneshot_waiter&) const noexcept { return conclude_now(); }
};

} // namespace detail

/// The end that sends: one value, or one error. If it goes without having sent anything, the
/// receiver is told so.
///
/// Movable, also while a wait is pending, but not between making a lazy wait (`deferred`, an
/// `awaitable`) and starting it.
/// Destruction: every pending wait of its own completes with `operation_aborted`; what was
/// sent stays sent.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_oneshot_sender
    : public detail::channel_end<Executor, detail::oneshot_block<T, Threading>,
                                 detail::oneshot_sender_role> {
    using block = detail::oneshot_block<T, Threading>;
    using base = detail::channel_end<Executor, block, detail::oneshot_sender_role>;
    using request = detail::oneshot_request<T, Executor, Threading, false>;

public:
    using value_type = T;
    using typename base::executor_type;

    // Made by oneshot.
    basic_oneshot_sender(const Executor& executor, boost::intrusive_ptr<block> state) noexcept
        : base(executor, std::move(state))
    {
    }

    /// Sends the value. No handler runs inside this call. An rvalue of type T has not been moved
    /// from if there is an error, nor has another, unless the error came up meanwhile; if making
    /// the value throws, nothing was sent.
    /// Errors: `errc::closed` if the receiver is gone or has closed, `errc::rejected` if
    /// something was sent before. Thread safety: as the policy says.
    template <class U = T>
        requires(!std::is_void_v<T> && std::constructible_from<T, U>)
    void send(U&& value, error_code& ec)
    {
        if constexpr (std::is_same_v<U, T>) {
            ec = this->state().send(value);
        } else {
            ec = this->state().can_send();
            if (ec)
                return;
            T made(std::forward<U>(value));
            ec = this->state().send(made);
        }
    }

    /// The same where there is no value to send.
    void send(error_code& ec) noexcept requires(std::is_void_v<T>)
    {
        std::monostate nothing;
        ec = this->state().send(nothing);
    }

    /// The same, throwing `system_error`.
    template <class... U>
        requires(sizeof...(U) == (std::is_void_v<T> ? 0 : 1))
    void send(U&&... value)
    {
        error_code ec;
        send(std::forward<U>(value)..., ec);
        detail::throw_if(ec, "oneshot::send");
    }

    /// Sends an error instead: every receive completes with it.
    /// Errors: as `send`, and `errc::invalid_argument` if `error` is none. Thread safety: as
    /// the policy says.
    void send_error(const error_code& error, error_code& ec) noexcept
    {
        ec = this->state().send_error(error);
    }

    /// The same, throwing `system_error`.
    void send_error(const error_code& error)
    {
        error_code ec;
        send_error(error, ec);
        detail::throw_if(ec, "oneshot::send_error");
    }

    /// Waits until nobody wants the value any more, so that work on it can be given up.
    ///
    /// Completes when: the receiver is gone, or has closed.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or this end was destroyed.
    /// Executor: the handler's associated executor, by default the oneshot's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: all go at once. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_receiver_gone(Token&& token = Token())
    {
        return detail::start_wait(request{&this->state(), &this->executor()},
                                  std::forward<Token>(token));
    }

    /// Whether the receiver is gone, or has closed: then nothing can be sent. Thread safety:
    /// as the policy says.
    [[nodiscard]] bool is_closed() const noexcept
    {
        return this->state().is_unwanted().is_granted();
    }
};

/// The end that receives.
///
/// Movable, also while a receive is pending, but not between making a lazy one (`deferred`, an
/// `awaitable`) and starting it.
/// Destruction: every pending receive completes with `operation_aborted`; a value that was not
/// received is dropped.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_oneshot_receiver
    : public detail::channel_end<Executor, detail::oneshot_block<T, Threading>,
                                 detail::oneshot_receiver_role> {
    using block = detail::oneshot_block<T, Threading>;
    using base = detail::channel_end<Executor, block, detail::oneshot_receiver_role>;
    using request = detail::oneshot_request<T, Executor, Threading, true>;

public:
    using value_type = T;
    using typename base::executor_type;

    // Made by oneshot.
    basic_oneshot_receiver(const Executor& executor, boost::intrusive_ptr<block> state) noexcept
        : base(executor, std::move(state))
    {
    }

    /// Receives what is sent.
    ///
    /// Completes when: a value or an error was sent, or the sender is gone.
    /// Signature: `void(error_code, T)`, or `void(error_code)` if T is void.
    /// Errors, the first that applies: the one that was sent; `errc::closed` if an earlier receive
    /// got the value; `errc::sender_gone` if the sender was destroyed without sending;
    /// `errc::closed` if `close` was called and nothing had been sent. `operation_aborted` if
    /// cancelled, or this end was destroyed.
    /// Executor: the handler's associated executor, by default the oneshot's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it has received nothing; the value
    /// goes to the next receive.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<T> Token = default_token_t<Executor>>
    auto async_receive(Token&& token = Token())
    {
        return detail::start_wait(request{&this->state(), &this->executor()},
                                  std::forward<Token>(token));
    }

    /// The value (or for void, true) if it is there; else nothing, and if none will come, the
    /// error that `async_receive` would give. Never waits. Thread safety: as the policy says.
    [[nodiscard]] auto try_receive(error_code& ec) noexcept
    {
        using result =
            std::conditional_t<std::is_void_v<T>, bool,
                               std::optional<std::conditional_t<std::is_void_v<T>, int, T>>>;
        const detail::wait_decision decision = this->state().reserve();
        ec = decision.error();
        result received{};
        if (decision.is_granted()) {
            auto taken = this->state().conclude();
            ec = taken.error;
            if constexpr (std::is_void_v<T>)
                received = !ec;
            else if (!ec)
                received = std::move(taken.value);
        }
        return received;
    }

    /// The same, throwing `system_error`.
    [[nodiscard]] auto try_receive()
    {
        error_code ec;
        auto received = try_receive(ec);
        detail::throw_if(ec, "oneshot::try_receive");
        return received;
    }

    /// Tells the sender that nothing is wanted any more. A value that was sent before can
    /// still be received. Thread safety: as the policy says.
    void close() noexcept { this->state().close(); }

    /// Whether something is there, a value or an error. Thread safety: as the policy says.
    [[nodiscard]] bool is_ready() const noexcept { return this->state().look().is_granted(); }

    /// Whether nothing is there, and nothing will come. Thread safety: as the policy says.
    [[nodiscard]] bool is_closed() const noexcept
    {
        return static_cast<bool>(this->state().look().error());
    }
};

/// A channel for one value, in two ends, which may go their own ways and be destroyed in any
/// order: `auto [sender, receiver] = turnstile::oneshot<int>(executor);`
///
/// T is void, or a type that can be made without arguments, and moved, without throwing.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_oneshot {
    static_assert(std::is_void_v<T> || (std::is_nothrow_default_constructible_v<T> &&
                                        std::is_nothrow_move_constructible_v<T> &&
                                        std::is_nothrow_move_assignable_v<T>),
                  "what a oneshot hands over is made without arguments, and moved, without "
                  "throwing; a std::unique_ptr to anything is");
    using block = detail::oneshot_block<T, Threading>;

public:
    using value_type = T;
    using executor_type = Executor;
    using threading_policy = Threading;
    using sender_type = basic_oneshot_sender<T, Executor, Threading>;
    using receiver_type = basic_oneshot_receiver<T, Executor, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_oneshot<T, Other, Threading>;
    };

    /// Both ends, whose completions run on `executor` by default.
    explicit basic_oneshot(const Executor& executor)
        : basic_oneshot(executor, boost::intrusive_ptr<block>(new block(executor)))
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_oneshot(Context& context) : basic_oneshot(context.get_executor())
    {
    }

    /// The executor of the ends, as long as the sender is in here.
    executor_type get_executor() const noexcept { return sender.get_executor(); }

    sender_type sender;
    receiver_type receiver;

private:
    basic_oneshot(const Executor& executor, const boost::intrusive_ptr<block>& state)
        : sender(executor, state), receiver(executor, state)
    {
    }
};

/// The usual oneshot: any thread, any executor.
template <class T>
using oneshot = basic_oneshot<T>;
/// Its ends.
template <class T>
using oneshot_sender = basic_oneshot_sender<T>;
template <class T>
using oneshot_receiver = basic_oneshot_receiver<T>;

namespace local {

/// A oneshot for one strand: no atomics, no locks.
template <class T>
using oneshot = basic_oneshot<T, asio::any_io_executor, strand_confined>;
/// Its ends.
template <class T>
using oneshot_sender = basic_oneshot_sender<T, asio::any_io_executor, strand_confined>;
template <class T>
using oneshot_receiver = basic_oneshot_receiver<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
