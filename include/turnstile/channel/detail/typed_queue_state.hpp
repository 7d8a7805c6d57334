// SPDX-License-Identifier: BSL-1.0
// The state of a queue of T: the operations that push and pop values without waiting. queue_state
// has the rules, queue_memory the values; basic_queue_operations and the requests of
// queue_request.hpp use this class.
//
// A value that was not pushed has not been moved from. A call that grants other waiters may cause
// the destruction of the queue on another thread, so it keeps a reference to the state if it uses
// the state afterwards.
#pragma once

#include <turnstile/channel/detail/queue_memory.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class T, class Threading, class Store>
class typed_queue_state final : public queue_memory<T, Threading, Store> {
    using memory = queue_memory<T, Threading, Store>;
    using node = typename memory::node;

public:
    using typename memory::priority_type;
    using typename memory::stored_type;

    template <class Executor, class... Args>
    explicit typed_queue_state(const Executor& executor, Args... args) : memory(executor, args...)
    {
    }

    // Ref is queue_item_ref, or a type that ignores it.
    template <class Ref>
    wait_decision push_now(priority_type& priority, stored_type& value, Ref& ref)
    {
        auto* n = this->guarded([&]() -> node* {
            if (!this->can_push_fast()) [[unlikely]]
                return nullptr;
            node* spare = this->take_spare();
            if (!spare) [[unlikely]]
                return nullptr;
            spare->fill(priority, value);
            this->push_fast(*spare);
            ref = queue_item_ref{spare, Store::sequence_of(*spare)};
            return spare;
        });
        if (n) [[likely]]
            return wait_decision::granted();
        queue_item_ref slow_ref;
        const wait_decision decision = push_slowly(priority, value, slow_ref);
        ref = slow_ref;
        return decision;
    }

    // False after a discarding close.
    bool fill_reservation(priority_type& priority, T&& value, queue_item_ref& ref)
    {
        typename memory::node_guard unused{*this, this->acquire_node()};
        if constexpr (moves_safely<T>) {
            return fill_now(unused.n, priority, value, ref);
        } else {
            if (!this->can_fill_reservation())
                return false;
            stored_type stored = this->to_stored(std::move(value));
            return fill_now(unused.n, priority, stored, ref);
        }
    }

    wait_decision pop_now(std::optional<stored_type>& out) noexcept
    {
        bool surplus = false;
        node* n = this->guarded([&]() -> node* {
            if (!this->can_pop_fast()) [[unlikely]]
                return nullptr;
            auto* next = static_cast<node*>(this->pop_fast());
            this->take_value_locked(*next, out);
            surplus = this->has_surplus();
            return next;
        });
        if (!n) [[unlikely]]
            return take_with([&](ready_list& ready) { return this->pop(ready); }, out);
        this->take_value(*n, out, surplus);
        return wait_decision::granted();
    }

    // Appends value_of(value) of up to max_items items to `out`. If `out` cannot grow, nothing was
    // taken.
    template <class Value, class ValueOf>
    wait_decision take_batch_now(std::size_t max_items, std::vector<Value>& out, ValueOf value_of)
    {
        if (max_items == 0)
            return wait_decision::refused(errc::invalid_argument);
        const wait_state_ptr<Threading> keep_alive(this);
        queue_node_list items;
        std::size_t n = 0;
        const wait_decision decision = this->promise_batch(max_items, n);
        if (!decision.is_granted())
            return decision;
        try {
            out.reserve(n);
        } catch (...) {
            this->give_back_batch(n, items);
            this->free(items);
            throw;
        }
        this->take_batch(n, items);
        this->move_values(items, [&](auto&& v) { out.push_back(value_of(std::move(v))); });
        return decision;
    }
    std::vector<T> pop_batch_now(std::size_t max_items, error_code& ec)
    {
        std::vector<T> items;
        const auto value_of = [](auto&& stored) -> T&& {
            if constexpr (moves_safely<T>)
                return std::move(stored);
            else
                return std::move(*stored);
        };
        ec = take_batch_now(max_items, items, value_of).error();
        return items;
    }
    std::optional<T> pop_value_now(error_code& ec)
    {
        std::optional<stored_type> item;
        const wait_decision decision = pop_now(item);
        ec = decision.error();
        if (!decision.is_granted())
            return std::nullopt;
        return nothrow_movable<std::optional<T>>::unwrap(std::move(*item));
    }

    // The calls that end the use of the queue, and destroy the items that they discard.
    void close_queue(close_mode mode) noexcept
    {
        const wait_state_ptr<Threading> keep_alive(this);
        queue_node_list discarded;
        this->close(mode, discarded);
        this->free(discarded);
    }
    // The caller holds a reference.
    void remove_receiver() noexcept
    {
        queue_node_list discarded;
        memory::remove_receiver(discarded);
        this->free(discarded);
    }

    // For a priority_queue. Afterwards `priority` has the old priority, which the caller destroys.
    bool change_priority(const queue_item_ref& item, priority_type& priority) noexcept
    {
        return this->guarded([&] {
            const bool is_here = this->store().holds(item);
            if (is_here)
                this->store().change_priority(*item.node, priority);
            return is_here;
        });
    }
    void erase(const queue_item_ref& item, std::optional<stored_type>& out) noexcept
    {
        take_with(
            [&](ready_list& ready) {
                return this->store().holds(item) ? memory::erase(*item.node, ready) : nullptr;
            },
            out);
    }

    // The queue is being destroyed. Items that a try_pop_n is taking are left to it.
    void retire_queue() noexcept
    {
        queue_node_list discarded;
        memory::retire_queue(discarded);
        this->free(discarded);
    }

private:
    // Takes the item that take(ready) returns, if any.
    template <class Take>
    wait_decision take_with(Take take, std::optional<stored_type>& out) noexcept
    {
        bool surplus = false;
        wait_state_ptr<Threading> keep_alive;
        node* n = nullptr;
        const wait_decision decision = this->update([&](ready_list& ready) {
            n = static_cast<node*>(take(ready));
            this->update_fast_limit();
            if (!n)
                return this->empty_decision();
            this->take_value_locked(*n, out);
            surplus = this->has_surplus();
            if (!memory::is_trivial || surplus)
                keep_alive = this;
            return wait_decision::granted();
        });
        if (n)
            this->take_value(*n, out, surplus);
        return decision;
    }

    // Sets n to null if it has used the node.
    bool fill_now(node*& n, priority_type& priority, stored_type& value,
                  queue_item_ref& ref) noexcept
    {
        queue_node_list dropped;
        const bool filled = this->update([&](ready_list& ready) {
            // A value that had to be moved before the lock was taken is accepted, and discarded.
            if (moves_safely<T> && !this->accepts_fill())
                return false;
            n->fill(priority, value);
            ref.node = n;
            this->fill(*std::exchange(n, nullptr), ready, dropped);
            ref.sequence = Store::sequence_of(*ref.node);
            return true;
        });
        this->free(dropped);
        return filled;
    }

    wait_decision push_slowly(priority_type& priority, stored_type& value, queue_item_ref& ref)
    {
        wait_state_ptr<Threading> keep_alive;
        queue_node_list dropped;
        node* n = nullptr;
        bool needs_node = false;
        const auto attempt = [&](ready_list& ready) {
            const bool has_place = this->can_enter();
            const wait_decision decision =
                has_place ? wait_decision::granted() : this->overflow_decision();
            if (!decision.is_granted())
                return decision;
            needs_node = !n && !(n = this->take_spare());
            if (needs_node) {
                keep_alive = this;
                return wait_decision::pending();
            }
            n->fill(priority, value);
            ref = {n, 0};
            if (!has_place)
                keep_alive = this;
            if (!has_place && this->drops_newest()) {
                this->count_drop();
                dropped.push_back(*n);
            } else {
                this->enter(*n, ready);
                ref.sequence = Store::sequence_of(*n);
                if (!has_place)
                    this->drop_one(dropped);
            }
            n = nullptr;
            this->update_fast_limit();
            return decision;
        };
        wait_decision decision = this->update(attempt);
        if (needs_node) {
            n = this->acquire_node();
            decision = this->update(attempt);
        }
        this->recycle_node(n);
        this->free(dropped);
        return decision;
    }
};

} // namespace turnstile::inline v0_1::detail
