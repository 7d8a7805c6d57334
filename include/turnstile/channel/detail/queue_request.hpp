// SPDX-License-Identifier: BSL-1.0
// The requests of the operations that wait at a queue (push, pop, pop_n, reserve, join), with their
// waiters. basic_queue_operations passes them to start_wait().
//
// An operation may complete while the queue is being destroyed on another thread. Its completion
// therefore uses the pointer to the state that its waiter holds, not the queue.
//
// The Origin of a request is a pointer to the queue, or, for a counted end of the queue, a
// queue_end_origin, which owns a reference to the state, because a deferred operation may be
// started after its end was released.
#pragma once

#include <turnstile/channel/detail/typed_queue_state.hpp>
#include <turnstile/channel/queue_reservation.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The result of a pop. A failed pop completes with an error and an empty value, so a type without
// a default constructor is wrapped.
template <class T>
using popped_t = std::conditional_t<std::default_initializable<T>, T, std::optional<T>>;

// ------------------------------------------------------------------------ waiters ----

// The waiter of a push or a pop. Its destructor frees the items it still has.
template <class State>
struct queue_item_waiter : queue_waiter {
    using queue_waiter::queue_waiter;
    ~queue_item_waiter()
    {
        if (!state)
            return;
        if (item && state->release_item(*this))
            items.push_back(*item);
        state->free(items);
    }
    State* state = nullptr;
};

template <class State>
struct queue_pop_n_waiter : queue_item_waiter<State> {
    using queue_item_waiter<State>::queue_item_waiter;
    std::vector<typename State::stored_type> storage; // its capacity limits the number of items
};

template <class State>
struct queue_reserve_waiter : queue_waiter {
    using queue_waiter::queue_waiter;
    State* state = nullptr;
};

// ----------------------------------------------------------------------- supplies ----

// The memory that a push or a pop_n of a coroutine needs to wait, allocated while the coroutine can
// still be thrown an exception (request_traits::needs_supplies). The request finds it by `known`.

template <class State>
struct queue_push_supplies {
    queue_push_supplies(State& s, queue_node* n, queue_push_supplies*& known) noexcept
        : state(&s), node(n)
    {
        known = this;
    }
    queue_push_supplies(const queue_push_supplies&) = delete;
    queue_push_supplies& operator=(const queue_push_supplies&) = delete;
    ~queue_push_supplies()
    {
        if (!node)
            return;
        queue_node_list unused;
        unused.push_back(*node);
        state->free(unused);
    }

    State* state;
    queue_node* node;
};

template <class Stored>
struct queue_pop_n_supplies {
    queue_pop_n_supplies(std::vector<Stored>&& r, queue_pop_n_supplies*& known) noexcept
        : storage(std::move(r))
    {
        known = this;
    }
    queue_pop_n_supplies(const queue_pop_n_supplies&) = delete;
    queue_pop_n_supplies& operator=(const queue_pop_n_supplies&) = delete;

    std::vector<Stored> storage;
};

// ----------------------------------------------------------------------- requests ----

template <class Queue, class Origin, class Result, class Waiter>
struct queue_request {
    using executor_type = typename Queue::executor_type;
    using threading = typename Queue::threading_policy;
    using result_type = Result;
    using waiter_type = Waiter;
    using state_type = typename Queue::state_type;

    Origin origin;

    const executor_type& executor() const noexcept { return origin->executor(); }
    state_type& state() const noexcept { return origin->state(); }
};

template <class Queue, class Origin = Queue*>
struct queue_push_request : queue_request<Queue, Origin, typename Queue::push_result_type,
                                          queue_item_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{
        .irrevocable = true, // the state removes the item of a cancelled push
        .result = result_source::waiter,
        .needs_supplies = true,
    };
    using push_result_type = typename Queue::push_result_type;
    using waiter_type = queue_item_waiter<typename Queue::state_type>;
    using supplies_type = queue_push_supplies<typename Queue::state_type>;

    [[no_unique_address]] typename Queue::priority_type priority;
    typename Queue::state_type::stored_type value;
    // A push without a result keeps no reference to its item.
    struct no_item_ref {
        no_item_ref& operator=(const queue_item_ref&) noexcept { return *this; }
    };
    [[no_unique_address]] std::conditional_t<std::is_void_v<push_result_type>, no_item_ref,
                                             queue_item_ref>
        item{};
    supplies_type* supplied = nullptr;

    wait_decision try_now() { return this->state().push_now(priority, value, item); }
    void give_back() const noexcept {}
    supplies_type supplies()
    {
        return supplies_type(this->state(), this->state().make_item(priority, value), supplied);
    }
    void prepare(waiter_type& w)
    {
        w.operation = queue_operation::push;
        w.item = supplied ? std::exchange(supplied->node, nullptr)
                          : this->state().make_item(priority, value);
        w.state = &this->state();
    }
    push_result_type take_now() const noexcept
    {
        if constexpr (!std::is_void_v<push_result_type>)
            return Queue::push_result(item);
    }
    push_result_type take(waiter_type& w) const noexcept
    {
        return Queue::push_result({w.item, w.sequence});
    }
};

template <class Queue, class Origin = Queue*>
struct queue_pop_request : queue_request<Queue, Origin, popped_t<typename Queue::value_type>,
                                         queue_item_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{.irrevocable = true, .result = result_source::outcome};
    using stored_type = typename Queue::state_type::stored_type;
    using waiter_type = queue_item_waiter<typename Queue::state_type>;
    using outcome_type = wait_outcome<popped_t<typename Queue::value_type>>;

    std::optional<stored_type> item{};

    wait_decision try_now() noexcept { return this->state().pop_now(item); }
    void give_back() const noexcept {}
    void prepare(waiter_type& w) const noexcept { w.state = &this->state(); }
    outcome_type conclude_now() noexcept { return {error_code(), std::move(*item)}; }
    outcome_type conclude(waiter_type& w) noexcept
    {
        if (!w.state->take_items(w)) [[unlikely]]
            return {wait_decision::aborted().error()};
        w.state->move_values(w.items, [&](stored_type&& v) { item.emplace(std::move(v)); });
        return conclude_now();
    }
};

template <class Queue, class Origin = Queue*>
struct queue_pop_n_request : queue_request<Queue, Origin, std::vector<typename Queue::value_type>,
                                           queue_pop_n_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{
        .irrevocable = true, .result = result_source::outcome, .needs_supplies = true};
    using stored_type = typename Queue::state_type::stored_type;
    using waiter_type = queue_pop_n_waiter<typename Queue::state_type>;
    using outcome_type = wait_outcome<std::vector<typename Queue::value_type>>;
    using supplies_type = queue_pop_n_supplies<stored_type>;

    std::size_t max_items;
    std::vector<stored_type> items{};
    supplies_type* supplied = nullptr;

    wait_decision try_now()
    {
        return this->state().take_batch_now(max_items, items,
                                            [](stored_type&& v) { return std::move(v); });
    }
    void give_back() const noexcept {}
    supplies_type supplies() { return supplies_type(make_storage(), supplied); }
    void prepare(waiter_type& w)
    {
        w.storage = supplied ? std::move(supplied->storage) : make_storage();
        w.max_items = std::min(max_items, w.storage.capacity());
        w.state = &this->state();
    }
    std::vector<stored_type> make_storage() const
    {
        constexpr std::size_t usual = 64;
        std::vector<stored_type> storage;
        storage.reserve(std::min(max_items, std::max(usual, this->state().size())));
        return storage;
    }
    outcome_type conclude_now() noexcept { return {error_code(), std::move(items)}; }
    outcome_type conclude(waiter_type& w) noexcept
    {
        if (!w.state->take_items(w)) [[unlikely]]
            return {wait_decision::aborted().error()};
        w.state->move_values(w.items, [&](stored_type&& v) { w.storage.push_back(std::move(v)); });
        return {error_code(), std::move(w.storage)};
    }
};

template <class Queue, class Origin = Queue*>
struct queue_reserve_request : queue_request<Queue, Origin, queue_reservation<Queue>,
                                             queue_reserve_waiter<typename Queue::state_type>> {
    static constexpr request_traits traits{.refundable = true, .result = result_source::waiter};
    using waiter_type = queue_reserve_waiter<typename Queue::state_type>;

    std::size_t places;

    wait_decision try_now() const noexcept { return this->state().try_reserve(places); }
    void give_back() const noexcept { this->state().release_reservation(places); }
    void prepare(waiter_type& w) const noexcept
    {
        w.operation = queue_operation::reserve;
        w.max_items = places;
        w.state = &this->state();
    }
    queue_reservation<Queue> take_now() const noexcept
    {
        return Queue::make_reservation(this->state(), places);
    }
    queue_reservation<Queue> take(waiter_type& w) const noexcept
    {
        return Queue::make_reservation(*w.state, w.max_items);
    }
};

template <class Queue>
struct queue_join_request : queue_request<Queue, Queue*, void, queue_waiter> {
    static constexpr request_traits traits{.refundable = true};

    wait_decision try_now() const noexcept { return this->state().try_join(); }
    void give_back() const noexcept {}
    void prepare(queue_waiter& w) const noexcept { w.operation = queue_operation::join; }
};

} // namespace turnstile::inline v0_1::detail
