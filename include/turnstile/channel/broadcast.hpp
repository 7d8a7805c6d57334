// SPDX-License-Identifier: BSL-1.0
// A broadcast channel: every receiver gets every value that is sent after its subscription. A
// receiver that is too slow learns how many values it has missed.
#pragma once

#include <turnstile/channel/detail/broadcast_request.hpp>
#include <turnstile/channel/detail/broadcast_state.hpp>
#include <turnstile/channel/detail/channel_capacity.hpp>
#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/channel/shared_value.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1 {

/// A received value, shared with all other receivers, and the number of values missed before it.
template <class T, class Threading = thread_safe>
class broadcast_message : public shared_value<T, Threading> {
public:
    /// An empty message.
    broadcast_message() noexcept = default;

    /// The number of values, immediately before this one, that the receiver has missed because it
    /// was too slow.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

private:
    template <class, class, class>
    friend class basic_broadcast_receiver;
    explicit broadcast_message(typename detail::broadcast_state<Threading>::received r) noexcept
        : shared_value<T, Threading>(std::move(r.value)), missed_(r.missed)
    {
    }

    std::uint64_t missed_ = 0;
};

/// A receiver of a broadcast, made by `basic_broadcast::subscribe`.
///
/// It may be moved while a receive is outstanding, but not between creating a lazy receive
/// (`deferred`, an `awaitable`) and starting it. It may outlive the broadcast.
///
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand.
/// @par Destruction
/// Every receive whose handler has not run completes with `operation_aborted`.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_broadcast_receiver
    : public detail::channel_end<Executor, detail::broadcast_state<Threading>,
                                 detail::broadcast_receiver_role> {
    using state_type = detail::broadcast_state<Threading>;
    using base = detail::channel_end<Executor, state_type, detail::broadcast_receiver_role>;

public:
    using typename base::executor_type;

    /// The result of a receive.
    using message_type = broadcast_message<T, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_broadcast_receiver<T, Other, Threading>;
    };

    /// Receives the next value. A receiver that was too slow receives the oldest value that the
    /// broadcast still keeps; `missed()` of the message is the exact number of values in between.
    ///
    /// @par Completes when
    /// A value is available that this receiver has not received.
    /// @par Completion signature
    /// `void(error_code, message_type)`
    /// @par Errors
    /// `errc::closed` if the broadcast is closed or destroyed and no value is left;
    /// `operation_aborted` if the receive is cancelled, or the receiver or the broadcast is
    /// destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the broadcast.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A receive that is cancelled before its handler runs has received nothing; the value is still
    /// the next one. The value is chosen when the handler is about to run, so values that are
    /// displaced while the completion is queued count as missed.
    /// @par Fairness
    /// The receives of one receiver are granted in order, one value each.
    template <token_for<message_type> Token = default_token_t<Executor>>
    auto async_receive(Token&& token = Token())
    {
        return detail::start_wait(
            detail::broadcast_request<basic_broadcast_receiver>{{&this->state(), &this->executor()},
                                                                &subscription()},
            std::forward<Token>(token));
    }

    /// Receives the next value, or returns an empty message if none is available. Never waits.
    ///
    /// @param ec Set to the error of `async_receive` if no value will come; cleared otherwise.
    [[nodiscard]] message_type try_receive(error_code& ec) noexcept
    {
        typename state_type::received r;
        const detail::wait_decision decision = this->state().reserve(subscription());
        ec = decision.error();
        if (decision.is_granted() && !this->state().take_reserved(subscription(), r))
            ec = asio::error::operation_aborted; // the broadcast was destroyed in between
        return make_message(std::move(r));
    }
    /// The same without the reason.
    [[nodiscard]] message_type try_receive() noexcept
    {
        error_code ignored;
        return try_receive(ignored);
    }

    /// The number of values that can be received without waiting: a hint.
    [[nodiscard]] std::uint64_t available() const noexcept
    {
        return this->state().available(subscription());
    }
    /// Returns whether no further value will be sent. Values may be left to receive.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The number of waiting receives of this receiver: a hint.
    using base::waiting;

private:
    template <class, class, class>
    friend class basic_broadcast;
    friend detail::broadcast_request<basic_broadcast_receiver>;

    basic_broadcast_receiver(const Executor& executor, boost::intrusive_ptr<state_type> state)
        : base(executor, std::move(state), {new detail::broadcast_subscription})
    {
        this->state().add_subscription(subscription());
    }

    static message_type make_message(typename state_type::received&& r) noexcept
    {
        return message_type(std::move(r));
    }
    detail::broadcast_subscription& subscription() const noexcept
    {
        return *this->role().subscription;
    }
};

/// Sends each value to all receivers that have subscribed before.
///
/// The broadcast keeps the latest `capacity` values, each of them once, and every receiver reads
/// them at its own pace. Sending never waits: it displaces the oldest value, and a receiver that
/// has not received that value learns how many it has missed.
///
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand. No function runs a completion handler inside the call.
/// @par Destruction
/// Destroying a broadcast that is not closed drops the values that are left. Every receive whose
/// handler has not run completes with `operation_aborted`, and later ones fail with `errc::closed`.
/// Destroying a closed broadcast has no effect on its receivers.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_broadcast : detail::channel_end<Executor, detail::broadcast_state<Threading>,
                                            detail::broadcast_sender_role> {
    using state_type = detail::broadcast_state<Threading>;
    using base = detail::channel_end<Executor, state_type, detail::broadcast_sender_role>;

public:
    using value_type = T;
    using typename base::executor_type;
    using typename base::threading_policy;
    using receiver_type = basic_broadcast_receiver<T, Executor, Threading>;
    using message_type = typename receiver_type::message_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_broadcast<T, Other, Threading>;
    };

    /// Constructs a broadcast.
    ///
    /// @param executor The default executor of the completions of its receivers.
    /// @param capacity The number of values that are kept; at least 1.
    /// @par Exceptions
    /// `system_error` with `errc::invalid_argument` if `capacity` is 0, negative, or larger than
    /// the address space; `std::bad_alloc`.
    template <std::integral Count>
    basic_broadcast(const Executor& executor, Count capacity)
        : base(executor,
               new state_type(executor,
                              detail::checked_broadcast_capacity(
                                  capacity, "broadcast: capacity must be at least 1, and not "
                                            "larger than the address space")))
    {
    }

    /// The same with the executor of an execution context.
    template <detail::execution_context Context, std::integral Count>
    basic_broadcast(Context& context, Count capacity)
        : basic_broadcast(context.get_executor(), capacity)
    {
    }

    basic_broadcast(const basic_broadcast&) = delete;
    basic_broadcast& operator=(const basic_broadcast&) = delete;

    using base::get_executor;

    /// Returns a receiver of the values that are sent from this call on.
    receiver_type subscribe() { return receiver_type(this->executor(), this->shared_state()); }

    /// Sends a value to all receivers and returns their number. Never waits.
    ///
    /// @param value A value, the arguments of one, or a `shared_value` such as a received message.
    /// A `shared_value` is sent without a copy, and its sending cannot throw. If the construction
    /// of a value throws, nothing was sent.
    /// @par Errors
    /// `errc::closed` if the broadcast is closed; `errc::invalid_argument` if `value` is an empty
    /// `shared_value`.
    template <detail::shareable<T, Threading> U = T>
    std::size_t send(U&& value, error_code& ec)
    {
        std::size_t receivers_reached = 0;
        ec = errc::closed;
        if (is_closed())
            return receivers_reached;
        // Afterwards `share` holds the displaced value, which is destroyed without the lock.
        auto share = shared_value<T, Threading>::of(std::forward<U>(value));
        if (!share)
            ec = errc::invalid_argument;
        else if (this->state().send(share.node_, receivers_reached))
            ec = {};
        return receivers_reached;
    }

    /// Like the overload with `error_code&`, but throws `system_error`.
    template <detail::shareable<T, Threading> U = T>
    std::size_t send(U&& value)
    {
        error_code ec;
        const std::size_t receivers_reached = send(std::forward<U>(value), ec);
        detail::throw_if(ec, "broadcast::send");
        return receivers_reached;
    }

    /// Closes the broadcast. Each receiver still receives the values that are left for it, then
    /// `errc::closed`.
    void close() noexcept { this->state().close(); }

    /// Returns whether the broadcast is closed.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The number of receivers: a hint.
    [[nodiscard]] std::size_t receivers() const noexcept { return this->state().receivers(); }
    /// The number of values that are kept.
    [[nodiscard]] std::size_t capacity() const noexcept { return this->state().capacity(); }
    /// The number of waiting receives of all receivers: a hint.
    using base::waiting;
};

/// The usual broadcast: for any thread and any executor.
template <class T>
using broadcast = basic_broadcast<T>;
/// The receiver of a `broadcast`.
template <class T>
using broadcast_receiver = basic_broadcast_receiver<T>;

namespace local {

/// A broadcast for one strand: no atomics, no locks. Received values must stay on the strand.
template <class T>
using broadcast = basic_broadcast<T, asio::any_io_executor, strand_confined>;
/// The receiver of a `local::broadcast`.
template <class T>
using broadcast_receiver = basic_broadcast_receiver<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
