// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/queue_state.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// Nodes that are not in use. Taken under the lock; where Cell is atomic, put without it.
template <class Cell>
class spare_nodes {
public:
    void put(item_node& n) noexcept
    {
        const auto put_first = [&n](item_node*& first) noexcept {
            n.next_spare = std::exchange(first, &n);
            return true;
        };
        first_.update(put_first, std::memory_order_release);
    }
    // Only one at a time takes, so that what it sees first stays first, or something is put
    // before it.
    item_node* take() noexcept
    {
        item_node* n = nullptr;
        const auto take_first = [&n](item_node*& first) noexcept {
            n = first;
            if (n)
                first = n->next_spare;
            return n != nullptr;
        };
        if (first_.update(take_first, std::memory_order_acquire))
            n->pusher = nullptr;
        return n;
    }

private:
    Cell first_{nullptr};
};

// The item that a push has made, should it still be there.
struct item_ticket {
    item_node* node = nullptr;
    std::uint64_t turn = 0;
};

// The items themselves, and the memory they are in. No value is destroyed under the lock.
template <class T, class Threading, class Store>
class item_state final : public queue_state<Threading, Store> {
    using base_state = queue_state<Threading, Store>;

public:
    // What is moved under the lock, where nothing may throw.
    using stored = std::conditional_t<moves_safely<T>, T, std::unique_ptr<T>>;
    using label = typename Store::label;
    using receipt = typename Store::receipt;
    using ticket_type = item_ticket;

    template <class Executor, class... Args>
    explicit item_state(const Executor& executor, Args... args) : base_state(executor, args...)
    {
    }
    ~item_state() override
    {
        item_list rest;
        this->clear(rest, whereabouts::gone);
        free(rest);
        while (item_node* n = spare_.take())
            delete static_cast<node*>(n);
    }

    static stored pack(T&& value)
    {
        if constexpr (moves_safely<T>)
            return std::move(value);
        else
            return std::make_unique<T>(std::move(value));
    }

    // --- Without waiting. A value that was not pushed has not been moved from.

    template <class Ticket>
    TURNSTILE_HOT wait_decision push_now(label& l, stored& value, Ticket& ticket)
    {
        auto* n = this->guarded([&]() -> node* {
            if (!this->may_enter_quietly()) [[unlikely]]
                return nullptr;
            auto* spare = static_cast<node*>(spare_.take());
            if (!spare) [[unlikely]]
                return nullptr;
            spare->fill(l, value);
            this->enter_quietly(*spare);
            ticket = item_ticket{spare, Store::turn_of(*spare)};
            return spare;
        });
        if (n) [[likely]]
            return wait_decision::granted();
        item_ticket slow;
        const wait_decision decision = push_slowly(l, value, slow);
        ticket = slow;
        return decision;
    }

    // Fills a reservation; false after a discarding close.
    bool fill_place(label& l, T&& value, item_ticket& ticket)
    {
        node_guard free{*this, acquire()};
        if constexpr (moves_safely<T>) {
            return fill_now(free.n, l, value, ticket);
        } else {
            if (!this->can_fill())
                return false;
            stored packed = pack(std::move(value));
            return fill_now(free.n, l, packed, ticket);
        }
    }

    wait_decision pop_now(std::optional<stored>& out) noexcept
    {
        bool surplus = false;
        node* n = this->guarded([&]() -> node* {
            if (!this->may_take_quietly()) [[unlikely]]
                return nullptr;
            auto* next = static_cast<node*>(this->take_quietly());
            empty_locked(*next, out);
            surplus = has_surplus();
            return next;
        });
        if (!n) [[unlikely]]
            return take_with([&](ready_list& ready) { return this->take(ready); }, out);
        empty(*n, out, surplus);
        return wait_decision::granted();
    }

    // --- Where the store has priorities: by what a push gave.

    // The old one is destroyed by the caller.
    bool change(const item_ticket& ticket, label& priority) noexcept
    {
        return this->guarded([&] {
            const bool here = holds(ticket);
            if (here)
                this->store().change(*ticket.node, priority);
            return here;
        });
    }
    void erase(const item_ticket& ticket, std::optional<stored>& out) noexcept
    {
        take_with(
            [&](ready_list& ready) {
                return holds(ticket) ? this->take_out(*ticket.node, ready) : nullptr;
            },
            out);
    }

    // --- With a waiter.

    item_node* make(label& l, stored& value)
    {
        node* n = acquire();
        n->fill(l, value);
        return n;
    }

    // Moves the values out, to where there is room for them. If that throws, the rest is lost.
    template <class Out>
    void unpack(item_list& items, Out out)
    {
        struct guard {
            item_state& state;
            item_list& items;
            ~guard() { state.free(items); }
        } frees{*this, items};
        for (item_node& n : items)
            out(std::move(static_cast<node&>(n).value));
    }

    // Destroys what is in the list, and keeps the memory, or some of it.
    void free(item_list& items) noexcept
    {
        if (items.empty())
            return;
        for (item_node& n : items)
            static_cast<node&>(n).clear();
        std::size_t count = 0;
        const bool surplus = this->guarded([&] {
            for (; !items.empty(); ++count)
                spare_.put(*take_front(items));
            return has_surplus();
        });
        if (surplus)
            free_surplus(2 * count);
    }

    // The queue is being destroyed. Only what is on its way to a handler is left.
    void end() noexcept
    {
        item_list discarded;
        base_state::end(discarded);
        free(discarded);
    }

private:
    struct node : Store::node {
        node() noexcept {}
        ~node() {} // clear() has been called

        void fill(label& l, stored& v) noexcept
        {
            this->name(std::move(l));
            std::construct_at(&value, std::move(v));
        }
        void clear() noexcept
        {
            std::destroy_at(&value);
            this->forget();
        }

        union {
            stored value;
        };
    };

    // Where destroying does nothing, memory is kept within the same section.
    static constexpr bool trivial =
        std::is_trivially_destructible_v<stored> && std::is_trivially_destructible_v<label>;
    using node_pointer = std::conditional_t<trivial, confined_atomic<item_node*>,
                                            policy_atomic<Threading, item_node*>>;
    static constexpr std::size_t kept = 256;

    // Under the lock: whether there are many more nodes than items.
    bool has_surplus() const noexcept
    {
        return !Store::keeps_nodes && nodes_ > kept && nodes_ / 2 > this->size_;
    }
    // Frees up to n nodes: two for each that was used, so that they become fewer in time.
    TURNSTILE_COLD void free_surplus(std::size_t n) noexcept
    {
        for (; n != 0; --n) {
            item_node* spare = this->guarded([&] {
                item_node* s = has_surplus() ? spare_.take() : nullptr;
                nodes_ -= s ? 1 : 0;
                return s;
            });
            if (!spare)
                return;
            delete static_cast<node*>(spare);
        }
    }

    bool holds(const item_ticket& ticket) noexcept
    {
        return this->store().holds(*ticket.node, ticket.turn);
    }

    // Takes the item that take(ready) gives, if any, which may let others go.
    template <class Take>
    wait_decision take_with(Take take, std::optional<stored>& out) noexcept
    {
        bool surplus = false;
        wait_state_ptr<Threading> keep_alive;
        node* n = nullptr;
        const wait_decision decision = this->update([&](ready_list& ready) {
            n = static_cast<node*>(take(ready));
            this->look_for_quiet();
            if (!n)
                return this->explain_empty();
            empty_locked(*n, out);
            surplus = has_surplus();
            if (!trivial || surplus) // those it lets go may destroy the queue
                keep_alive = this;
            return wait_decision::granted();
        });
        if (n)
            empty(*n, out, surplus);
        return decision;
    }

    // Takes the value out of a node, and keeps the node: the part of it that is done under the
    // lock, and the part that is not.
    void empty_locked(node& n, std::optional<stored>& out) noexcept
    {
        if constexpr (trivial) {
            out.emplace(std::move(n.value));
            spare_.put(n);
        }
    }
    void empty(node& n, std::optional<stored>& out, bool surplus) noexcept
    {
        if constexpr (!trivial) {
            out.emplace(std::move(n.value));
            n.clear();
            spare_.put(n);
        }
        if (surplus) [[unlikely]]
            free_surplus(2);
    }

    node* acquire()
    {
        auto* n = static_cast<node*>(this->guarded([&] {
            item_node* spare = spare_.take();
            nodes_ += spare ? 0 : 1;
            return spare;
        }));
        if (n)
            return n;
        try {
            return new node;
        } catch (...) {
            this->guarded([&] { --nodes_; });
            throw;
        }
    }
    // Of a node without a value.
    void recycle(node* n) noexcept
    {
        if (n)
            this->guarded([&] { spare_.put(*n); });
    }

    // Keeps a node for later that was not needed.
    struct node_guard {
        item_state& state;
        node* n;
        ~node_guard() { state.recycle(n); }
    };

    // With the node, which it uses up if it can.
    bool fill_now(node*& n, label& l, stored& value, item_ticket& ticket) noexcept
    {
        item_list dropped;
        const bool filled = this->update([&](ready_list& ready) {
            // What had to be moved before has come, and is discarded.
            if (moves_safely<T> && !this->accepts_fill())
                return false;
            n->fill(l, value);
            ticket.node = n;
            this->fill(*std::exchange(n, nullptr), ready, dropped);
            ticket.turn = Store::turn_of(*ticket.node);
            return true;
        });
        free(dropped);
        return filled;
    }

    wait_decision push_slowly(label& l, stored& value, item_ticket& ticket)
    {
        wait_state_ptr<Threading> keep_alive;
        item_list dropped;
        node* n = nullptr;
        bool starved = false;
        const auto attempt = [&](ready_list& ready) {
            const bool enters = this->may_enter();
            const wait_decision full = enters ? wait_decision::granted() : this->refuse_entry();
            if (!full.is_granted())
                return full;
            starved = !n && !(n = static_cast<node*>(spare_.take()));
            if (starved) {
                keep_alive = this; // for what follows, as for a pop
                return wait_decision::pending();
            }
            n->fill(l, value);
            ticket = {n, 0};
            if (!enters) // as for a pop
                keep_alive = this;
            if (!enters && this->drops_newest()) {
                this->count_drop();
                dropped.push_back(*n);
            } else {
                this->enter(*n, ready);
                ticket.turn = Store::turn_of(*n);
                if (!enters)
                    this->drop_one(dropped);
            }
            n = nullptr;
            this->look_for_quiet();
            return full;
        };
        wait_decision decision = this->update(attempt);
        if (starved) {
            n = acquire();
            decision = this->update(attempt);
        }
        recycle(n);
        free(dropped);
        return decision;
    }

    spare_nodes<node_pointer> spare_;
    std::size_t nodes_ = 0; // in use or not; guarded by the lock
};

} // namespace turnstile::inline v0_1::detail
