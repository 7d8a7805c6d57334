// SPDX-License-Identifier: BSL-1.0
// A broadcast channel: every receiver gets every value, from a ring that they share.
#pragma once

#include <turnstile/channel/detail/broadcast_state.hpp>
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
namespace detail {

struct broadcast_sender_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.abandon_stream();
    }
};

struct broadcast_receiver_role {
    broadcast_seat* seat;

    template <class State>
    void leave(State& state) const noexcept
    {
        state.leave(seat);
    }
};

} // namespace detail

/// A value that was received, shared with all other receivers, and what was missed before it.
template <class T, class Threading = thread_safe>
class broadcast_message : public shared_value<T, Threading> {
public:
    /// Empty.
    broadcast_message() noexcept = default;
    explicit broadcast_message(typename detail::broadcast_state<Threading>::received r) noexcept
        : shared_value<T, Threading>(std::move(r.value)), missed_(r.missed)
    {
    }

    /// How many values, right before this one, the receiver has missed because it was slow.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

private:
    std::uint64_t missed_ = 0;
};

/// One who listens to a broadcast: made by `subscribe`, gone with its destructor.
///
/// Movable, also while a receive is pending, but not between making a lazy one (`deferred`, an
/// `awaitable`) and starting it. It may outlive the broadcast.
/// Destruction: every pending receive completes with `operation_aborted`.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class [[nodiscard]] basic_broadcast_receiver
    : public detail::channel_end<Executor, detail::broadcast_state<Threading>,
                                 detail::broadcast_receiver_role> {
    using state_type = detail::broadcast_state<Threading>;
    using base = detail::channel_end<Executor, state_type, detail::broadcast_receiver_role>;

public:
    using typename base::executor_type;

    /// What a receive gives.
    using message_type = broadcast_message<T, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_broadcast_receiver<T, Other, Threading>;
    };

    // Made by subscribe().
    basic_broadcast_receiver(const Executor& executor, boost::intrusive_ptr<state_type> state)
        : base(executor, std::move(state), {new detail::broadcast_seat})
    {
        this->state().join(seat());
    }

    /// Receives the next value. If the receiver was too slow, that is the oldest one still in
    /// the ring, and its `missed()` says exactly how many came between.
    ///
    /// Completes when: a value is there that this receiver has not had.
    /// Signature: `void(error_code, message_type)`.
    /// Errors: `errc::closed` if the broadcast was closed or destroyed, and nothing is left;
    /// `operation_aborted` if cancelled, or the receiver or the broadcast was destroyed.
    /// Executor: the handler's associated executor, by default the broadcast's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it has received nothing; the value
    /// is the next one still. It is chosen as it is delivered, so what is sent while a slow
    /// executor has the completion queued may displace it, and counts as missed.
    /// Fairness: several receives of one receiver are served in order, one value each.
    /// Thread safety: as the policy says.
    template <token_for<message_type> Token = default_token_t<Executor>>
    auto async_receive(Token&& token = Token())
    {
        return detail::start_wait(request{&this->state(), &seat(), &this->executor()},
                                  std::forward<Token>(token));
    }

    /// The next value, or an empty message if there is none; never waits. `ec` is set if none
    /// will come: to what `async_receive` would say. Thread safety: as the policy says.
    [[nodiscard]] message_type try_receive(error_code& ec) noexcept
    {
        typename state_type::received r;
        const detail::wait_decision decision = this->state().reserve(seat());
        ec = decision.error();
        if (decision.is_granted() && !this->state().take_reserved(seat(), r))
            ec = asio::error::operation_aborted; // the sender was destroyed in between
        return message_type(std::move(r));
    }
    /// The same, without saying why there is none.
    [[nodiscard]] message_type try_receive() noexcept
    {
        error_code ignored;
        return try_receive(ignored);
    }

    /// How many values can be received without waiting. Thread safety: as the policy says.
    [[nodiscard]] std::uint64_t available() const noexcept
    {
        return this->state().available(seat());
    }

    /// Whether nothing more will be sent; there may be something left to receive.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = message_type;
        using waiter_type = detail::receive_waiter;
        static constexpr detail::request_traits traits{.result = detail::result_source::outcome};

        state_type* state_;
        detail::broadcast_seat* seat;
        const Executor* executor_;

        const Executor& executor() const noexcept { return *executor_; }
        state_type& state() const noexcept { return *state_; }
        detail::wait_decision try_now() const noexcept { return state_->reserve(*seat); }
        void give_back() const noexcept { state_->give_back(*seat); }
        void prepare(detail::receive_waiter& w) const noexcept { w.seat = seat; }
        detail::wait_outcome<message_type> conclude_now() const noexcept
        {
            typename state_type::received r;
            if (!state_->take_reserved(*seat, r))
                return {asio::error::operation_aborted, {}};
            return {error_code(), message_type(std::move(r))};
        }
        detail::wait_outcome<message_type> conclude(detail::receive_waiter&) const noexcept
        {
            return conclude_now();
        }
    };

    detail::broadcast_seat& seat() const noexcept { return *this->role().seat; }
};

/// Sends each value to all who have subscribed before.
///
/// The latest `capacity` values are kept, each of them once, in a ring that all receivers
/// read from at their own pace. Sending never waits: it displaces the oldest value, and a
/// receiver that has not had it learns how many it has missed.
///
/// Destruction: every pending receive completes with `operation_aborted`, later ones with
/// `errc::closed`. If it was closed before, receivers still get what is left.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_broadcast : detail::channel_end<Executor, detail::broadcast_state<Threading>,
                                            detail::broadcast_sender_role> {
    using state_type = detail::broadcast_state<Threading>;
    using base = detail::channel_end<Executor, state_type, detail::broadcast_sender_role>;
    using value_share = shared_value<T, Threading>;

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

    /// A broadcast that keeps the latest `capacity` values.
    /// Errors: throws `system_error` with `errc::invalid_argument` if that is 0.
    basic_broadcast(const Executor& executor, std::size_t capacity)
        : base(executor, new state_type(executor, capacity))
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    basic_broadcast(Context& context, std::size_t capacity)
        : basic_broadcast(context.get_executor(), capacity)
    {
    }

    basic_broadcast(const basic_broadcast&) = delete;
    basic_broadcast& operator=(const basic_broadcast&) = delete;

    using base::get_executor;

    /// A receiver for what is sent from now on. Thread safety: as the policy says.
    receiver_type subscribe() { return receiver_type(this->executor(), this->share()); }

    /// Sends a value to all receivers there are, and returns their number; never waits, and no
    /// handler runs inside this call. If making the value throws, nothing was sent. One that is
    /// made already, such as a message that was received, is not copied, and nothing can fail.
    /// Errors: `errc::closed`; `errc::invalid_argument` if it is an empty `shared_value`. Thread
    /// safety: as the policy says.
    template <detail::shareable<T, Threading> U = T>
    std::size_t send(U&& value, error_code& ec)
    {
        std::size_t reached = 0;
        ec = errc::closed;
        if (is_closed())
            return reached;
        // What it displaces is then in its place, and goes without the lock.
        auto share = value_share::of(std::forward<U>(value));
        if (!share)
            ec = errc::invalid_argument;
        else if (this->state().send(share.node_, reached))
            ec = {};
        return reached;
    }

    /// The same, throwing `system_error`.
    template <detail::shareable<T, Threading> U = T>
    std::size_t send(U&& value)
    {
        error_code ec;
        const std::size_t reached = send(std::forward<U>(value), ec);
        detail::throw_if(ec, "broadcast::send");
        return reached;
    }

    /// Ends the stream: receivers get what is left for them, then `errc::closed`. Thread
    /// safety: as the policy says.
    void close() noexcept { this->state().close(); }

    /// Whether it is closed.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// How many receivers there are: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::size_t receivers() const noexcept { return this->state().receivers(); }
    /// How many values are kept at most.
    [[nodiscard]] std::size_t capacity() const noexcept { return this->state().capacity(); }
};

/// The usual broadcast: any thread, any executor.
template <class T>
using broadcast = basic_broadcast<T>;
/// Its receiver.
template <class T>
using broadcast_receiver = basic_broadcast_receiver<T>;

namespace local {

/// A broadcast for one strand: no atomics, no locks. What is received must stay there, too.
template <class T>
using broadcast = basic_broadcast<T, asio::any_io_executor, strand_confined>;
/// Its receiver.
template <class T>
using broadcast_receiver = basic_broadcast_receiver<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
