// SPDX-License-Identifier: BSL-1.0
// The operations that `queue` and `priority_queue` share: everything except the pushes, which are
// documented with each of them.
#pragma once

#include <turnstile/channel/detail/queue_request.hpp>
#include <turnstile/channel/detail/typed_queue_state.hpp>
#include <turnstile/channel/queue_policy.hpp>
#include <turnstile/channel/queue_receiver.hpp>
#include <turnstile/channel/queue_reservation.hpp>
#include <turnstile/channel/queue_sender.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// The base class of `basic_queue` and `basic_priority_queue`. It cannot be used on its own.
///
/// T must be movable. It need be neither copyable nor default constructible. The only code of T
/// that runs under the internal lock is a move that cannot throw.
///
/// If the move of a popped value throws while it is passed to the completion handler, the handler's
/// side receives the exception, and the value is lost. The same holds for an exception of the
/// default constructor, which makes the value of a pop that fails.
///
/// @par Fairness
/// Strict FIFO among pushes and reservations, and strict FIFO among pops.
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand. No function runs a completion handler inside the call,
/// except through the handler's immediate executor.
/// @par Destruction
/// Every waiter and every granted pop whose handler has not run completes with `operation_aborted`,
/// and the items are destroyed. A push whose handler has not run succeeds exactly if its item has
/// left the queue before. Reservations, senders and receivers may outlive the queue.
template <class T, class Executor, class Threading, class Store>
class basic_queue_operations
    : public detail::io_object<Executor, Threading,
                               detail::typed_queue_state<T, Threading, Store>> {
    using base =
        detail::io_object<Executor, Threading, detail::typed_queue_state<T, Threading, Store>>;
    static_assert(std::is_nothrow_destructible_v<T> && std::move_constructible<T>,
                  "a queue needs values that can be moved, and destroyed without throwing");

public:
    using value_type = T;
    using typename base::executor_type;
    /// The priority of an item; an empty type for `queue`.
    using priority_type = typename Store::priority_type;
    /// The result of a successful push: `void` for `queue`, `queue_item_id` for `priority_queue`.
    using push_result_type = typename Store::push_result_type;
    /// The result of a pop: T, or `std::optional<T>` if T has no default constructor.
    using pop_result_type = detail::popped_t<T>;
    /// Places in this queue.
    using reservation_type = queue_reservation<basic_queue_operations>;
    /// The counted ends of this queue.
    using sender_type = queue_sender<basic_queue_operations>;
    using receiver_type = queue_receiver<basic_queue_operations>;

    // ------------------------------------------------------------------------ pop ----

    /// Takes the next item.
    ///
    /// @par Completes when
    /// An item is available, and all earlier pops have been granted theirs.
    /// @par Completion signature
    /// `void(error_code, pop_result_type)`
    /// @par Errors
    /// `errc::closed` if the queue is closed and no item is left; `operation_aborted` if the pop is
    /// cancelled or the queue is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A pop that is cancelled before its handler runs takes nothing. The pop takes the item that
    /// is next when its handler is about to run. Until then the item stays in the queue.
    /// @par Fairness
    /// FIFO.
    template <token_for<pop_result_type> Token = default_token_t<Executor>>
    auto async_pop(Token&& token = Token())
    {
        return detail::start_wait(detail::queue_pop_request<basic_queue_operations>{{this}},
                                  std::forward<Token>(token));
    }

    /// Takes all available items, at least one and at most `max_items`.
    ///
    /// @param max_items At least 1. A pop that has to wait takes at most 64 items, or as many as
    /// were in the queue when it was started, if that is more.
    /// @par Completes when
    /// An item is available, and all earlier pops have been granted theirs. A pop that has to wait
    /// also takes the items that arrive before its handler runs.
    /// @par Completion signature
    /// `void(error_code, std::vector<T>)`
    /// @par Errors
    /// `errc::invalid_argument` if `max_items` is 0; otherwise the errors of `async_pop`.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A pop that is cancelled before its handler runs takes nothing. If a move of T throws while
    /// the items are passed to the handler, or memory for them cannot be allocated, all of them are
    /// lost and stay unfinished. This can happen only if the moves of T may throw.
    /// @par Fairness
    /// FIFO, together with `async_pop`.
    template <token_for<std::vector<T>> Token = default_token_t<Executor>>
    auto async_pop_n(std::size_t max_items, Token&& token = Token())
    {
        return detail::start_wait(
            detail::queue_pop_n_request<basic_queue_operations>{{this}, max_items},
            std::forward<Token>(token));
    }

    /// Takes the next item, or returns an empty optional if none is available. Never waits.
    ///
    /// @param ec Set to the error of `async_pop` if no item will come; cleared otherwise.
    [[nodiscard]] std::optional<T> try_pop(error_code& ec)
    {
        return this->state().pop_value_now(ec);
    }
    /// The same without the reason.
    [[nodiscard]] std::optional<T> try_pop()
    {
        error_code ignored;
        return try_pop(ignored);
    }

    /// Takes all available items, at most `max_items`; returns an empty vector if there are none.
    /// Never waits.
    ///
    /// @param max_items At least 1.
    /// @param ec Set to `errc::invalid_argument` if `max_items` is 0, and to `errc::closed` if no
    /// item will come; cleared otherwise.
    /// @par Exceptions
    /// `std::bad_alloc`; then nothing was taken. The exceptions of the move constructor of T; then
    /// all items of the batch are lost and stay unfinished.
    [[nodiscard]] std::vector<T> try_pop_n(std::size_t max_items, error_code& ec)
    {
        return this->state().pop_batch_now(max_items, ec);
    }
    /// The same without the reason.
    [[nodiscard]] std::vector<T> try_pop_n(std::size_t max_items)
    {
        error_code ignored;
        return try_pop_n(max_items, ignored);
    }

    // -------------------------------------------------------------------- reserve ----

    /// Waits for n places in the queue and holds them for values that are pushed later. All places
    /// are granted at the same time.
    ///
    /// @param n At least 1 and at most the capacity; 1 for a queue of capacity 0.
    /// @par Completes when
    /// The queue has room for n items, and all earlier pushes and reservations have been granted
    /// theirs. A reservation drops no item: it waits even where a push would drop one. A queue of
    /// capacity 0 has room for as many items as pops wait.
    /// @par Completion signature
    /// `void(error_code, reservation_type)`
    /// @par Errors
    /// `errc::invalid_argument` if n is 0, and `errc::too_large` if it is above its maximum;
    /// `errc::closed` if the queue is closed; `errc::rejected` if it has no room and its policy is
    /// `overflow::reject`; `operation_aborted` if the operation is cancelled or the queue is
    /// destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds no place.
    /// @par Fairness
    /// FIFO, together with the pushes: a push never overtakes an earlier reservation, however many
    /// places that one waits for.
    template <token_for<reservation_type> Token = default_token_t<Executor>>
    auto async_reserve(std::size_t n, Token&& token = Token())
    {
        return detail::start_wait(detail::queue_reserve_request<basic_queue_operations>{{this}, n},
                                  std::forward<Token>(token));
    }
    /// Equivalent to `async_reserve(1, token)`.
    template <token_for<reservation_type> Token = default_token_t<Executor>>
    auto async_reserve(Token&& token = Token())
    {
        return async_reserve(1, std::forward<Token>(token));
    }

    /// Returns n places if the queue has room for n items and no push or reservation waits;
    /// otherwise an empty reservation.
    ///
    /// @param ec Set to the error of `async_reserve` if waiting would not help; cleared otherwise.
    [[nodiscard]] reservation_type try_reserve(std::size_t n, error_code& ec) noexcept
    {
        return try_reserve_in(this->state(), n, ec);
    }
    /// The same without the reason.
    [[nodiscard]] reservation_type try_reserve(std::size_t n = 1) noexcept
    {
        error_code ignored;
        return try_reserve(n, ignored);
    }
    /// Equivalent to `try_reserve(1, ec)`.
    [[nodiscard]] reservation_type try_reserve(error_code& ec) noexcept
    {
        return try_reserve(1, ec);
    }

    // ----------------------------------------------------------------------- ends ----

    /// Returns a sender. The queue is closed when all its senders are gone; `queue_sender` says
    /// how. A queue of which no sender was ever taken is not affected, and the queue itself can be
    /// pushed to as long as it is open.
    ///
    /// @par Errors
    /// `errc::closed` if the queue is closed, also by the end of its last sender; the sender is
    /// empty then.
    [[nodiscard]] sender_type sender(error_code& ec) noexcept
    {
        if (this->state().add_sender()) {
            ec = {};
            return sender_type(this->executor(), *this->state_pointer());
        }
        ec = errc::closed;
        return sender_type();
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    [[nodiscard]] sender_type sender()
    {
        error_code ec;
        sender_type end = sender(ec);
        detail::throw_if(ec, "queue::sender");
        return end;
    }

    /// Returns a receiver. When all receivers of the queue are gone, the queue is closed and its
    /// items are discarded; `queue_receiver` says how. A queue of which no receiver was ever taken
    /// is not affected.
    ///
    /// @par Errors
    /// `errc::closed` after `close(close_mode::discard)` or the end of the last receiver; the
    /// receiver is empty then. A queue that is closed otherwise may have items, and has receivers.
    [[nodiscard]] receiver_type receiver(error_code& ec) noexcept
    {
        if (this->state().add_receiver()) {
            ec = {};
            return receiver_type(this->executor(), *this->state_pointer());
        }
        ec = errc::closed;
        return receiver_type();
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    [[nodiscard]] receiver_type receiver()
    {
        error_code ec;
        receiver_type end = receiver(ec);
        detail::throw_if(ec, "queue::receiver");
        return end;
    }

    // ----------------------------------------------------------------------- join ----

    /// Reports that a popped item has been processed.
    ///
    /// @par Errors
    /// `errc::negative_count` if every popped item is already done; nothing changes then.
    void task_done(error_code& ec) noexcept
    {
        ec = this->state().task_done() ? error_code() : make_error_code(errc::negative_count);
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    void task_done()
    {
        error_code ec;
        task_done(ec);
        detail::throw_if(ec, "queue::task_done");
    }

    /// Waits until `task_done` has been called for every item that was pushed. Dropped, erased and
    /// discarded items count as done.
    ///
    /// @par Completes when
    /// No item is unfinished. A join that was granted completes even if an item is pushed before
    /// its handler runs.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// `operation_aborted` if the join is cancelled or the queue is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A join consumes nothing.
    /// @par Fairness
    /// All joins are granted at the same time.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_join(Token&& token = Token())
    {
        return detail::start_wait(detail::queue_join_request<basic_queue_operations>{{this}},
                                  std::forward<Token>(token));
    }

    // ---------------------------------------------------------------------- close ----

    /// Closes the queue. Waiting and later pushes and reservations fail with `errc::closed`.
    ///
    /// With `close_mode::drain` the remaining items can still be popped. Pops fail with
    /// `errc::closed` when no item is left and none can come from a reservation or from a pop that
    /// is cancelled.
    ///
    /// With `close_mode::discard` the remaining items are destroyed inside this call and count as
    /// done, and waiting pops fail with `errc::closed`. An item that was popped or is granted to a
    /// pop stays unfinished.
    ///
    /// A second call has no effect, except that a discarding close may follow a draining one.
    void close(close_mode mode = close_mode::drain) noexcept { this->state().close_queue(mode); }

    // ---------------------------------------------------------------------- state ----
    // The numbers are hints: they may be outdated as soon as they are returned.

    /// Returns whether `close` was called, or the last sender or receiver is gone.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The number of items in the queue. Items that are granted to pops are not counted.
    [[nodiscard]] std::size_t size() const noexcept { return this->state().size(); }
    /// Equivalent to `size() == 0`.
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// The number of items that the queue has room for, or `unbounded`.
    [[nodiscard]] std::size_t capacity() const noexcept { return this->state().capacity(); }
    /// The number of free places: the capacity less the items in the queue and the reserved places,
    /// or `unbounded`. A push may wait all the same, behind other pushes and reservations.
    [[nodiscard]] std::size_t free() const noexcept { return this->state().free_places(); }
    /// The number of pushed items for which `task_done` has not been called.
    [[nodiscard]] std::size_t unfinished() const noexcept { return this->state().unfinished(); }
    /// The number of items that the overflow policy has dropped.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return this->state().dropped(); }
    /// The number of waiters: pushes, reservations, pops and joins.
    using base::waiting;
    /// The number of waiting pushes and reservations.
    [[nodiscard]] std::size_t waiting_pushes() const noexcept
    {
        return this->state().waiting_pushes();
    }
    /// The number of waiting pops.
    [[nodiscard]] std::size_t waiting_pops() const noexcept { return this->state().waiting_pops(); }

protected:
    using state_type = detail::typed_queue_state<T, Threading, Store>;

    template <class... Args>
    explicit basic_queue_operations(const Executor& executor, Args... args)
        : base(executor, args...)
    {
    }
    ~basic_queue_operations() { this->state_pointer()->retire_queue(); }

    template <class Token>
    auto start_push(T&& value, priority_type&& priority, Token&& token)
    {
        return detail::start_wait(
            detail::queue_push_request<basic_queue_operations>{
                {this}, std::move(priority), state_type::to_stored(std::move(value))},
            std::forward<Token>(token));
    }

    // Moves from `value` only if the item enters.
    static bool try_push_item(state_type& state, T&& value, priority_type&& priority,
                              detail::queue_item_ref& item, error_code& ec)
    {
        detail::wait_decision decision = detail::wait_decision::pending();
        if constexpr (detail::moves_safely<T>)
            decision = state.push_now(priority, value, item);
        else
            decision = state.reserve_for_push();
        ec = decision.error();
        if (!decision.is_granted())
            return false;
        if constexpr (!detail::moves_safely<T>)
            item = make_reservation(state, 1).fill(std::move(value), std::move(priority), ec);
        return !ec;
    }

private:
    template <class, class, class, class>
    friend struct detail::queue_request;
    template <class, class>
    friend struct detail::queue_push_request;
    template <class, class>
    friend struct detail::queue_pop_request;
    template <class, class>
    friend struct detail::queue_pop_n_request;
    template <class, class>
    friend struct detail::queue_reserve_request;
    friend reservation_type;
    friend sender_type;
    friend receiver_type;

    static reservation_type make_reservation(state_type& state, std::size_t places) noexcept
    {
        return reservation_type(state, places);
    }
    static reservation_type try_reserve_in(state_type& state, std::size_t places,
                                           error_code& ec) noexcept
    {
        const detail::wait_decision decision = state.try_reserve(places);
        ec = decision.error();
        return decision.is_granted() ? make_reservation(state, places) : reservation_type();
    }
    static push_result_type push_result(const detail::queue_item_ref& item) noexcept
    {
        if constexpr (!std::is_void_v<push_result_type>)
            return push_result_type(item);
    }
};

} // namespace turnstile::inline v0_1
