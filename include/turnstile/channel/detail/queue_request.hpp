// SPDX-License-Identifier: BSL-1.0
#pragma once

// What waits at a queue: the waiters with what they hold, and the Asks for start_wait.hpp.

#include <turnstile/channel/detail/typed_queue_state.hpp>
#include <turnstile/channel/reservation.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// What a pop gives: where there is an error there has to be a value, too.
template <class T>
using popped_t = std::conditional_t<std::default_initializable<T>, T, std::optional<T>>;

// A waiter that has items, or has had.
template <class State>
struct holding_waiter : item_waiter {
    using item_waiter::item_waiter;
    ~holding_waiter()
    {
        if (!state)
            return;
        if (item && state->part_from(*this))
            items.push_back(*item);
        state->free(items);
    }
    State* state = nullptr;
};

template <class State>
struct batch_waiter : holding_waiter<State> {
    using holding_waiter<State>::holding_waiter;
    std::vector<typename State::stored> room; // for all that may be granted
};

// What a coroutine that is about to wait must have first, since its wait cannot fail to start:
// the node of a push, the room for a batch. The Ask knows it by a pointer.
template <class State>
struct push_supplies {
    push_supplies(State& s, item_node* n, push_supplies*& known) noexcept : state(&s), node(n)
    {
        known = this;
    }
    push_supplies(const push_supplies&) = delete;
    push_supplies& operator=(const push_supplies&) = delete;
    ~push_supplies()
    {
        if (!node)
            return;
        item_list unused;
        unused.push_back(*node);
        state->free(unused);
    }

    State* state;
    item_node* node;
};

template <class T>
struct batch_supplies {
    batch_supplies(std::vector<T>&& r, batch_supplies*& known) noexcept : room(std::move(r))
    {
        known = this;
    }
    batch_supplies(const batch_supplies&) = delete;
    batch_supplies& operator=(const batch_supplies&) = delete;

    std::vector<T> room;
};

// What the waits of a queue have in common. What is granted may be delivered while the queue is
// being destroyed on another thread: so there only the waiter's pointer to the state is used.
template <class Queue, class Result, class Waiter>
struct queue_request {
    using executor_type = typename Queue::executor_type;
    using threading = typename Queue::threading_policy;
    using result_type = Result;
    using waiter_type = Waiter;
    using state_type = typename Queue::state_type;

    Queue* queue;

    const executor_type& executor() const noexcept { return queue->executor(); }
    state_type& state() const noexcept { return queue->state(); }
};

template <class Queue>
struct push_request : queue_request<Queue, typename Queue::receipt_type,
                                    holding_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{
        .irrevocable = true, // the state finds the item again
        .result = result_source::waiter,
        .needs_supplies = true,
    };
    using receipt_type = typename Queue::receipt_type;
    using waiter_type = holding_waiter<typename Queue::state_type>;

    [[no_unique_address]] typename Queue::label_type label;
    typename Queue::state_type::stored value;
    // What no handle is made from need not be kept.
    struct no_ticket {
        no_ticket& operator=(const item_ticket&) noexcept { return *this; }
    };
    [[no_unique_address]] std::conditional_t<std::is_void_v<receipt_type>, no_ticket, item_ticket>
        ticket{};
    using supplies_type = push_supplies<typename Queue::state_type>;
    supplies_type* supplied = nullptr;

    wait_decision try_now() { return this->state().push_now(label, value, ticket); }
    void give_back() const noexcept {}
    supplies_type supplies()
    {
        return supplies_type(this->state(), this->state().make(label, value), supplied);
    }
    void prepare(waiter_type& w)
    {
        w.what = role::push;
        w.item =
            supplied ? std::exchange(supplied->node, nullptr) : this->state().make(label, value);
        w.state = &this->state();
    }
    receipt_type take_now() const noexcept
    {
        if constexpr (!std::is_void_v<receipt_type>)
            return Queue::receipt_for(ticket);
    }
    receipt_type take(waiter_type& w) const noexcept
    {
        return Queue::receipt_for({w.item, w.turn});
    }
};

template <class Queue>
struct pop_request : queue_request<Queue, popped_t<typename Queue::value_type>,
                                   holding_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{.irrevocable = true, .result = result_source::outcome};
    using stored = typename Queue::state_type::stored;
    using waiter_type = holding_waiter<typename Queue::state_type>;
    using outcome_type = wait_outcome<popped_t<typename Queue::value_type>>;

    std::optional<stored> item{};

    wait_decision try_now() noexcept { return this->state().pop_now(item); }
    void give_back() const noexcept {}
    void prepare(waiter_type& w) const noexcept { w.state = &this->state(); }
    outcome_type conclude_now() noexcept { return {error_code(), std::move(*item)}; }
    outcome_type conclude(waiter_type& w) noexcept
    {
        if (!w.state->deliver(w)) [[unlikely]]
            return {wait_decision::aborted().error()};
        w.state->unpack(w.items, [&](stored&& v) { item.emplace(std::move(v)); });
        return conclude_now();
    }
};

template <class Queue>
struct batch_request : queue_request<Queue, std::vector<typename Queue::value_type>,
                                     batch_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{
        .irrevocable = true, .result = result_source::outcome, .needs_supplies = true};
    using stored = typename Queue::state_type::stored;
    using waiter_type = batch_waiter<typename Queue::state_type>;
    using batch = std::vector<stored>;
    using outcome_type = wait_outcome<std::vector<typename Queue::value_type>>;

    using supplies_type = batch_supplies<stored>;

    std::size_t most;
    batch items{};
    supplies_type* supplied = nullptr;

    wait_decision try_now()
    {
        return this->queue->take_batch(most, items, [](stored&& v) { return std::move(v); });
    }
    void give_back() const noexcept {}
    supplies_type supplies() { return supplies_type(make_room(), supplied); }
    void prepare(waiter_type& w)
    {
        w.room = supplied ? std::move(supplied->room) : make_room();
        w.most = std::min(most, w.room.capacity());
        w.state = &this->state();
    }
    // Whatever it may be given, there must be room for.
    batch make_room() const
    {
        constexpr std::size_t usual = 64;
        batch room;
        room.reserve(std::min(most, std::max(usual, this->state().size())));
        return room;
    }
    outcome_type conclude_now() noexcept { return {error_code(), std::move(items)}; }
    outcome_type conclude(waiter_type& w) noexcept
    {
        if (!w.state->deliver(w)) [[unlikely]]
            return {wait_decision::aborted().error()};
        w.state->unpack(w.items, [&](stored&& v) { w.room.push_back(std::move(v)); });
        return {error_code(), std::move(w.room)};
    }
};

template <class State>
struct place_waiter : item_waiter {
    using item_waiter::item_waiter;
    State* state = nullptr;
};

template <class Queue>
struct reserve_request
    : queue_request<Queue, reservation<Queue>, place_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{.refundable = true, .result = result_source::waiter};
    using waiter_type = place_waiter<typename Queue::state_type>;

    wait_decision try_now() const noexcept { return this->state().try_reserve(); }
    void give_back() const noexcept { this->state().cancel_reservation(); }
    void prepare(waiter_type& w) const noexcept
    {
        w.what = role::reserve;
        w.state = &this->state();
    }
    reservation<Queue> take_now() const noexcept { return Queue::place_in(this->state()); }
    reservation<Queue> take(waiter_type& w) const noexcept { return Queue::place_in(*w.state); }
};

template <class Queue>
struct join_request : queue_request<Queue, void, item_waiter> {
    static constexpr request_traits traits{.refundable = true};

    wait_decision try_now() const noexcept { return this->state().try_join(); }
    void give_back() const noexcept {}
    void prepare(item_waiter& w) const noexcept { w.what = role::join; }
};

} // namespace turnstile::inline v0_1::detail
