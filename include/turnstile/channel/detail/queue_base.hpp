// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/queue_request.hpp>
#include <turnstile/channel/detail/typed_queue_state.hpp>
#include <turnstile/channel/policy.hpp>
#include <turnstile/channel/reservation.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// Everything about a queue but its pushes.
template <class T, class Executor, class Threading, class Store>
class item_queue : public io_object<Executor, Threading, item_state<T, Threading, Store>> {
    using base = io_object<Executor, Threading, item_state<T, Threading, Store>>;
    static_assert(std::is_nothrow_destructible_v<T> && std::move_constructible<T>,
                  "a queue holds values that can be moved, and destroyed without throwing");

public:
    using value_type = T;
    using typename base::executor_type;
    using label_type = typename Store::label;
    using receipt_type = typename Store::receipt;
    using reservation_type = reservation<item_queue>;
    using state_type = item_state<T, Threading, Store>;

    // ------------------------------------------------------------------------ pop ----

    /// Takes the next item.
    ///
    /// Completes when: an item is there and everyone who came before has had theirs.
    /// Signature: `void(error_code, T)`; `void(error_code, std::optional<T>)` if T has no
    /// default constructor.
    /// Errors: `errc::closed` if the queue is closed and nothing is left; `operation_aborted`
    /// if cancelled, or the queue was destroyed.
    /// Executor: the handler's associated executor, by default the queue's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it takes nothing. Which item it gets is
    /// seen when it is delivered: the one that is next then. Until then the item stays where it
    /// is, even if others fill the queue meanwhile.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<popped_t<T>> Token = default_token_t<Executor>>
    auto async_pop(Token&& token = Token())
    {
        return start_wait(pop_request<item_queue>{{this}}, std::forward<Token>(token));
    }

    /// Takes up to `most` items at once, as many as are there, but at least one.
    ///
    /// Completes when: an item is there and everyone who came before has had theirs. Where it
    /// has to wait, it takes what has come until its handler runs, but no more than 64 items, or
    /// as many as were there when it was started.
    /// Signature: `void(error_code, std::vector<T>)`.
    /// Errors: as `async_pop`, and `errc::invalid_argument` if `most` is 0.
    /// Executor, cancellation, fairness, thread safety: as `async_pop`.
    /// Cancel safety: as `async_pop`, for all of the items. But where the moves of T may throw,
    /// and one does as they are handed over, or there is no memory for them, all are lost, and
    /// stay unfinished.
    template <token_for<std::vector<T>> Token = default_token_t<Executor>>
    auto async_pop_n(std::size_t most, Token&& token = Token())
    {
        return start_wait(batch_request<item_queue>{{this}, most}, std::forward<Token>(token));
    }

    /// Takes the next item if one is there; never waits. `ec` is set if none will come: to
    /// what `async_pop` would say. Thread safety: as the policy says.
    [[nodiscard]] std::optional<T> try_pop(error_code& ec)
    {
        std::optional<typename state_type::stored> item;
        const wait_decision decision = this->state().pop_now(item);
        ec = decision.error();
        if (!decision.is_granted())
            return std::nullopt;
        return nothrow_movable<std::optional<T>>::unwrap(std::move(*item));
    }
    /// The same, without saying why there is none.
    [[nodiscard]] std::optional<T> try_pop()
    {
        error_code ignored;
        return try_pop(ignored);
    }

    /// Takes up to `most` items, none if there are none; never waits. `ec` as for `try_pop`, and
    /// `errc::invalid_argument` if `most` is 0. If there is no memory for the result, throws and
    /// takes nothing; if a move of T throws, all of them are lost, and stay unfinished. Thread
    /// safety: as the policy says.
    [[nodiscard]] std::vector<T> try_pop_n(std::size_t most, error_code& ec)
    {
        std::vector<T> items;
        const wait_decision decision = take_batch(most, items, [](auto&& stored) -> T&& {
            if constexpr (moves_safely<T>)
                return std::move(stored);
            else
                return std::move(*stored);
        });
        ec = decision.error();
        return items;
    }
    /// The same, without saying why there are none.
    [[nodiscard]] std::vector<T> try_pop_n(std::size_t most)
    {
        error_code ignored;
        return try_pop_n(most, ignored);
    }

    // -------------------------------------------------------------------- reserve ----

    /// Waits for a free place, and keeps it for a value that comes later.
    ///
    /// Completes when: there is room and everyone who came before has had theirs. Nothing is
    /// dropped for it: it waits even where a push would not. In a queue of capacity 0 there is
    /// room for as many as wait to pop.
    /// Signature: `void(error_code, reservation_type)`.
    /// Errors: `errc::closed` if the queue is closed; `errc::rejected` if there is no room and
    /// the policy is `overflow::reject`; `operation_aborted` if cancelled, or the queue was
    /// destroyed.
    /// Executor: the handler's associated executor, by default the queue's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it holds nothing.
    /// Fairness: FIFO, together with those who push. Thread safety: as the policy says.
    template <token_for<reservation_type> Token = default_token_t<Executor>>
    auto async_reserve(Token&& token = Token())
    {
        return start_wait(reserve_request<item_queue>{{this}}, std::forward<Token>(token));
    }

    /// A place if one is free now and nobody waits for it, else an empty reservation. `ec` is
    /// set if waiting would not help: to what `async_reserve` would say. Thread safety: as the
    /// policy says.
    [[nodiscard]] reservation_type try_reserve(error_code& ec) noexcept
    {
        const wait_decision decision = this->state().try_reserve();
        ec = decision.error();
        return decision.is_granted() ? place_in(this->state()) : reservation_type();
    }
    /// The same, without saying why there is none.
    [[nodiscard]] reservation_type try_reserve() noexcept
    {
        error_code ignored;
        return try_reserve(ignored);
    }

    // ----------------------------------------------------------------------- join ----

    /// Says that an item that was popped has been dealt with.
    /// Errors: `errc::negative_count` if that has been said of every item that was popped; the
    /// state is unchanged. Thread safety: as the policy says.
    void task_done(error_code& ec) noexcept
    {
        ec = this->state().task_done() ? error_code() : make_error_code(errc::negative_count);
    }
    /// The same, throwing `system_error`.
    void task_done()
    {
        error_code ec;
        task_done(ec);
        throw_if(ec, "queue::task_done");
    }

    /// Waits until `task_done` was called for every item that was ever pushed; those that were
    /// dropped or discarded do not count.
    ///
    /// Completes when: nothing is unfinished, now or later. Who waits then completes even if
    /// something is pushed at once.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the queue was destroyed.
    /// Executor: the handler's associated executor, by default the queue's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: all go at once. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_join(Token&& token = Token())
    {
        return start_wait(join_request<item_queue>{{this}}, std::forward<Token>(token));
    }

    // ---------------------------------------------------------------------- close ----

    /// Closes the queue: nothing more can be pushed. Pushes and reservations that wait complete
    /// with `errc::closed`. With `closing::drain` the items that are there can still be popped,
    /// and pops complete with `errc::closed` when there are none left, nor can any come from a
    /// reservation, nor back from a cancelled pop. With `closing::discard` the items are
    /// destroyed, inside this call, and count as done, and pops that wait complete with
    /// `errc::closed`; those items that have been popped, or are on their way to a handler, stay
    /// unfinished. Closing twice does nothing, but a discarding
    /// close may follow. No handler runs inside this call. Thread safety: as the policy says.
    void close(closing how = closing::drain) noexcept
    {
        const auto state = keep_state();
        item_list discarded;
        state->close(how, discarded);
        state->free(discarded);
    }

    /// Whether `close` was called.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The items that are there: a hint, like all of these, outdated as soon as it is returned.
    [[nodiscard]] std::size_t size() const noexcept { return this->state().size(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// How many items it has room for; `unbounded` if there is no limit.
    [[nodiscard]] std::size_t capacity() const noexcept { return this->state().capacity(); }
    /// The items pushed for which `task_done` has not been called.
    [[nodiscard]] std::size_t unfinished() const noexcept { return this->state().unfinished(); }
    /// How many items were dropped by the overflow policy.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return this->state().dropped(); }

protected:
    template <class... Args>
    explicit item_queue(const Executor& executor, Args... args) : base(executor, args...)
    {
    }
    ~item_queue() { this->state_pointer()->end(); }

    template <class Token>
    auto push(T&& value, label_type&& label, Token&& token)
    {
        return start_wait(
            push_request<item_queue>{{this}, std::move(label), state_type::pack(std::move(value))},
            std::forward<Token>(token));
    }

    // The value is moved only if there is a place for it. `ec` is set if waiting would not help.
    bool try_push_with(T&& value, label_type&& label, item_ticket& ticket, error_code& ec)
    {
        wait_decision decision = wait_decision::pending();
        if constexpr (moves_safely<T>)
            decision = this->state().push_now(label, value, ticket);
        else
            decision = this->state().enter();
        ec = decision.error();
        if (!decision.is_granted())
            return false;
        if constexpr (!moves_safely<T>)
            ticket = place_in(this->state()).fill(std::move(value), std::move(label), ec);
        return !ec;
    }

private:
    template <class, class, class>
    friend struct queue_request;
    friend push_request<item_queue>;
    friend batch_request<item_queue>;
    friend reserve_request<item_queue>;
    friend reservation_type;

    static reservation_type place_in(state_type& state) noexcept { return reservation_type(state); }

    // For what goes on after it has let others go: they may destroy the queue.
    boost::intrusive_ptr<state_type> keep_state() const noexcept { return &this->state(); }

    static receipt_type receipt_for(const item_ticket& ticket) noexcept
    {
        if constexpr (!std::is_void_v<receipt_type>)
            return receipt_type(ticket);
    }

    template <class Value, class Open>
    wait_decision take_batch(std::size_t most, std::vector<Value>& out, Open open)
    {
        if (most == 0)
            return wait_decision::refused(errc::invalid_argument);
        const auto state = keep_state();
        item_list items;
        std::size_t n = 0;
        const wait_decision decision = state->promise_batch(most, n);
        if (!decision.is_granted())
            return decision;
        try {
            out.reserve(n);
        } catch (...) {
            state->give_back_batch(n, items);
            state->free(items);
            throw;
        }
        state->take_batch(n, items);
        state->unpack(items, [&](auto&& v) { out.push_back(open(std::move(v))); });
        return decision;
    }
};

} // namespace turnstile::inline v0_1::detail
