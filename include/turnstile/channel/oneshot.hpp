// SPDX-License-Identifier: BSL-1.0
// A channel for one value: a sender sends a value or an error, and a receiver receives it or learns
// that the sender is gone.
#pragma once

#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/channel/detail/oneshot_request.hpp>
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

template <class T, class Executor, class Threading>
class basic_oneshot;

/// The sending end of a oneshot. It sends one value or one error.
///
/// It may be moved while a wait is outstanding, but not between creating a lazy wait (`deferred`,
/// an `awaitable`) and starting it.
///
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand. No function runs a completion handler inside the call,
/// except through the handler's immediate executor.
/// @par Destruction
/// Every wait whose handler has not run completes with `operation_aborted`. If nothing was sent,
/// the receives fail with `errc::sender_gone`; a value or an error that was sent stays available.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_oneshot_sender
    : public detail::channel_end<Executor, detail::typed_oneshot_state<T, Threading>,
                                 detail::oneshot_sender_role> {
    using state_type = detail::typed_oneshot_state<T, Threading>;
    using base = detail::channel_end<Executor, state_type, detail::oneshot_sender_role>;

public:
    using value_type = T;
    using typename base::executor_type;

    /// Sends the value.
    ///
    /// @param value A T, or an argument from which T is constructed. If the construction throws,
    /// nothing was sent. After an error an rvalue of type T has not been moved from; another
    /// argument may have been used if the receiver closed during the call.
    /// @par Errors
    /// `errc::closed` if the receiver is closed or destroyed; `errc::rejected` if a value or an
    /// error was sent before.
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

    /// The form for `void`: completes the receive without a value.
    void send(error_code& ec) noexcept requires(std::is_void_v<T>)
    {
        std::monostate nothing;
        ec = this->state().send(nothing);
    }

    /// Like the overloads with `error_code&`, but throws `system_error`.
    template <class... U>
        requires(sizeof...(U) == (std::is_void_v<T> ? 0 : 1))
    void send(U&&... value)
    {
        error_code ec;
        send(std::forward<U>(value)..., ec);
        detail::throw_if(ec, "oneshot::send");
    }

    /// Sends an error in place of a value. Every receive completes with it.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `error` is no error; otherwise the errors of `send`.
    void send_error(const error_code& error, error_code& ec) noexcept
    {
        ec = this->state().send_error(error);
    }

    /// Like the overload with `error_code&`, but throws `system_error`.
    void send_error(const error_code& error)
    {
        error_code ec;
        send_error(error, ec);
        detail::throw_if(ec, "oneshot::send_error");
    }

    /// Waits until the receiver is closed or destroyed, so that the work on the value can stop.
    ///
    /// @par Completes when
    /// The receiver is closed or destroyed.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// `operation_aborted` if the wait is cancelled or the sender is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the oneshot.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing.
    /// @par Fairness
    /// All waits are granted at the same time.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait_receiver_gone(Token&& token = Token())
    {
        return detail::start_wait(
            detail::oneshot_receiver_gone_request<T, Executor, Threading>{
                {{&this->state(), &this->executor()}}},
            std::forward<Token>(token));
    }

    /// Returns whether the receiver is closed or destroyed, so that nothing can be sent.
    [[nodiscard]] bool is_closed() const noexcept
    {
        return this->state().receiver_gone().is_granted();
    }
    /// The number of waits of the sender: a hint.
    using base::waiting;

private:
    template <class, class, class>
    friend class basic_oneshot;
    basic_oneshot_sender(const Executor& executor, boost::intrusive_ptr<state_type> state) noexcept
        : base(executor, std::move(state))
    {
    }
};

/// The receiving end of a oneshot.
///
/// It may be moved while a receive is outstanding, but not between creating a lazy receive
/// (`deferred`, an `awaitable`) and starting it.
///
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand. No function runs a completion handler inside the call,
/// except through the handler's immediate executor.
/// @par Destruction
/// Every receive whose handler has not run completes with `operation_aborted`. A value that was not
/// received is destroyed.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_oneshot_receiver
    : public detail::channel_end<Executor, detail::typed_oneshot_state<T, Threading>,
                                 detail::oneshot_receiver_role> {
    using state_type = detail::typed_oneshot_state<T, Threading>;
    using base = detail::channel_end<Executor, state_type, detail::oneshot_receiver_role>;

public:
    using value_type = T;
    using typename base::executor_type;

    /// Receives the value or the error.
    ///
    /// @par Completes when
    /// A value or an error was sent, or none will come.
    /// @par Completion signature
    /// `void(error_code, T)`, or `void(error_code)` if T is `void`
    /// @par Errors
    /// The first that applies: the error that was sent; `errc::closed` if an earlier receive got
    /// the value; `errc::sender_gone` if the sender was destroyed without sending; `errc::closed`
    /// if `close` was called and nothing had been sent. `operation_aborted` if the receive is
    /// cancelled or the receiver is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the oneshot.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A receive that is cancelled before its handler runs has received nothing; the value goes to
    /// the next receive.
    /// @par Fairness
    /// FIFO.
    template <token_for<T> Token = default_token_t<Executor>>
    auto async_receive(Token&& token = Token())
    {
        return detail::start_wait(
            detail::oneshot_receive_request<T, Executor, Threading>{
                {{&this->state(), &this->executor()}}},
            std::forward<Token>(token));
    }

    /// Receives the value if it is available. Never waits. Returns a `std::optional<T>`; a `bool`
    /// if T is `void`.
    ///
    /// @param ec Set to the error of `async_receive` if no value will come; cleared otherwise.
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

    /// The same without the reason.
    [[nodiscard]] auto try_receive() noexcept
    {
        error_code ignored;
        return try_receive(ignored);
    }

    /// Closes the receiver: nothing can be sent any further. A value that was sent before can still
    /// be received.
    void close() noexcept { this->state().close(); }

    /// Returns whether a value or an error is available.
    [[nodiscard]] bool is_ready() const noexcept { return this->state().peek().is_granted(); }
    /// Returns whether nothing is available and nothing will come.
    [[nodiscard]] bool is_closed() const noexcept
    {
        return static_cast<bool>(this->state().peek().error());
    }
    /// The number of waiting receives: a hint.
    using base::waiting;

private:
    template <class, class, class>
    friend class basic_oneshot;
    basic_oneshot_receiver(const Executor& executor,
                           boost::intrusive_ptr<state_type> state) noexcept
        : base(executor, std::move(state))
    {
    }
};

/// A channel for one value: a sender and a receiver, which may be moved and destroyed
/// independently. Usage: `auto [sender, receiver] = turnstile::oneshot<int>(executor);`
///
/// T is `void`, or a type whose default constructor and moves do not throw.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_oneshot {
    static_assert(std::is_void_v<T> || (std::is_nothrow_default_constructible_v<T> &&
                                        std::is_nothrow_move_constructible_v<T> &&
                                        std::is_nothrow_move_assignable_v<T>),
                  "oneshot: T must be default constructible and movable without throwing; use a "
                  "std::unique_ptr for any other type");
    using state_type = detail::typed_oneshot_state<T, Threading>;

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

    /// Constructs both ends. `executor` is the default executor of their completions.
    explicit basic_oneshot(const Executor& executor)
        : basic_oneshot(executor, boost::intrusive_ptr<state_type>(new state_type(executor)))
    {
    }

    /// The same with the executor of an execution context.
    template <detail::execution_context Context>
    explicit basic_oneshot(Context& context) : basic_oneshot(context.get_executor())
    {
    }

    /// Returns the executor of the ends. Must not be called after `sender` was moved from.
    executor_type get_executor() const noexcept { return sender.get_executor(); }

    sender_type sender;
    receiver_type receiver;

private:
    basic_oneshot(const Executor& executor, const boost::intrusive_ptr<state_type>& state)
        : sender(executor, state), receiver(executor, state)
    {
    }
};

/// The usual oneshot: for any thread and any executor.
template <class T>
using oneshot = basic_oneshot<T>;
/// The sender of a `oneshot`.
template <class T>
using oneshot_sender = basic_oneshot_sender<T>;
/// The receiver of a `oneshot`.
template <class T>
using oneshot_receiver = basic_oneshot_receiver<T>;

namespace local {

/// A oneshot for one strand: no atomics, no locks.
template <class T>
using oneshot = basic_oneshot<T, asio::any_io_executor, strand_confined>;
/// The sender of a `local::oneshot`.
template <class T>
using oneshot_sender = basic_oneshot_sender<T, asio::any_io_executor, strand_confined>;
/// The receiver of a `local::oneshot`.
template <class T>
using oneshot_receiver = basic_oneshot_receiver<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
