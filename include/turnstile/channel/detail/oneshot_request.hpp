// SPDX-License-Identifier: BSL-1.0
// The two ends of a oneshot, as roles of channel_end, and the requests of async_receive and
// async_wait_receiver_gone.
//
// The requests refer to the state, because an end may be moved or destroyed before its operation
// completes. Their conclude functions then report operation_aborted.
#pragma once

#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/channel/detail/oneshot_state.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>

namespace turnstile::inline v0_1::detail {

struct oneshot_sender_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.leave_sender();
    }
    template <class State>
    std::size_t waiting(State& state) const noexcept
    {
        return state.waiting_at_sender();
    }
};

struct oneshot_receiver_role {
    template <class State>
    void leave(State& state) const noexcept
    {
        state.leave_receiver();
    }
    template <class State>
    std::size_t waiting(State& state) const noexcept
    {
        return state.waiting_at_receiver();
    }
};

template <class T, class Executor, class Threading>
struct oneshot_request : channel_request<Executor, typed_oneshot_state<T, Threading>> {
    using waiter_type = oneshot_waiter;
};

template <class T, class Executor, class Threading>
struct oneshot_receive_request : oneshot_request<T, Executor, Threading> {
    using result_type = T;
    static constexpr request_traits traits{.result = result_source::outcome};

    wait_decision try_now() const noexcept { return this->state().reserve(); }
    void give_back() const noexcept { this->state().give_back(); }
    void prepare(oneshot_waiter&) const noexcept {}
    wait_outcome<T> conclude_now() const noexcept { return this->state().conclude(); }
    wait_outcome<T> conclude(oneshot_waiter&) const noexcept { return conclude_now(); }
};

template <class T, class Executor, class Threading>
struct oneshot_receiver_gone_request : oneshot_request<T, Executor, Threading> {
    using result_type = void;
    static constexpr request_traits traits{.refundable = true, .result = result_source::outcome};

    wait_decision try_now() const noexcept { return this->state().receiver_gone(); }
    void give_back() const noexcept {}
    void prepare(oneshot_waiter& w) const noexcept { w.is_at_sender = true; }
    wait_outcome<void> conclude_now() const noexcept
    {
        return {this->state().conclude_receiver_gone()};
    }
    wait_outcome<void> conclude(oneshot_waiter&) const noexcept { return conclude_now(); }
};

} // namespace turnstile::inline v0_1::detail
