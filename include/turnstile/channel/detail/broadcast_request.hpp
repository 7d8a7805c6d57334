// SPDX-License-Identifier: BSL-1.0
// The two ends of a broadcast, as roles of channel_end, and the request of async_receive.
//
// The request refers to the state and the subscription. Both outlive a receiver that is destroyed
// while a granted receive has not completed; take_reserved() then fails, and the receive is
// aborted.
#pragma once

#include <turnstile/channel/detail/broadcast_state.hpp>
#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/asio/error.hpp>

#include <cstddef>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct broadcast_sender_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.abandon_stream();
    }
    // The receives of all receivers.
    template <class State>
    std::size_t waiting(State& state) const noexcept
    {
        return state.waiting();
    }
};

struct broadcast_receiver_role {
    broadcast_subscription* subscription;

    template <class State>
    void leave(State& state) const noexcept
    {
        state.remove_subscription(subscription);
    }
    template <class State>
    std::size_t waiting(State& state) const noexcept
    {
        return state.waiting_receives(*subscription);
    }
};

template <class Receiver>
struct broadcast_request : channel_request<typename Receiver::executor_type,
                                           broadcast_state<typename Receiver::threading_policy>> {
    using result_type = typename Receiver::message_type;
    using waiter_type = broadcast_waiter;
    using state_type = broadcast_state<typename Receiver::threading_policy>;
    static constexpr request_traits traits{.result = result_source::outcome};

    broadcast_subscription* subscription;

    wait_decision try_now() const noexcept { return this->state().reserve(*subscription); }
    void give_back() const noexcept { this->state().give_back(*subscription); }
    void prepare(broadcast_waiter& w) const noexcept { w.subscription = subscription; }
    wait_outcome<result_type> conclude_now() const noexcept
    {
        typename state_type::received r;
        if (!this->state().take_reserved(*subscription, r))
            return {asio::error::operation_aborted, {}};
        return {error_code(), Receiver::make_message(std::move(r))};
    }
    wait_outcome<result_type> conclude(broadcast_waiter&) const noexcept { return conclude_now(); }
};

} // namespace turnstile::inline v0_1::detail
