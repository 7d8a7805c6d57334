// SPDX-License-Identifier: BSL-1.0
// The receiving end of a queue. `receiver()` of `queue` and `priority_queue` returns it.
#pragma once

#include <turnstile/channel/detail/queue_end.hpp>
#include <turnstile/channel/detail/queue_request.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// A receiving end of a queue. The queue counts its receivers. When the last one is gone, the queue
/// is closed as by `close(close_mode::discard)`: waiting and later pushes and reservations fail
/// with `errc::closed`, the items in the queue are destroyed, and so fail pops that wait. An item
/// that is granted to a pop is still delivered. Copyable and movable; the type is `receiver_type`
/// of the queue.
///
/// An empty handle, which was default constructed, moved from or released, has no queue. Its
/// `try_` functions fail with `errc::invalid_argument`, and its other functions throw
/// `system_error` with that code; nothing is started then.
///
/// @par Thread safety
/// As `std::shared_ptr`: with `thread_safe`, different handles of one queue may be used, copied and
/// destroyed on different threads at the same time, and so may the const functions of one handle.
/// With `strand_confined`, all calls must come from the strand of the queue.
/// @par Destruction
/// The handle is released. It may outlive the queue: operations that are outstanding when the queue
/// is destroyed, and all later ones, fail with `operation_aborted`.
template <class Queue>
class queue_receiver
    : public detail::queue_end<typename Queue::executor_type, typename Queue::state_type,
                               detail::queue_receiver_role> {
    using base = detail::queue_end<typename Queue::executor_type, typename Queue::state_type,
                                   detail::queue_receiver_role>;
    using origin_type = typename base::origin_type;

public:
    using value_type = typename Queue::value_type;
    using typename base::executor_type;
    /// The result of a pop: T, or `std::optional<T>` if T has no default constructor.
    using pop_result_type = typename Queue::pop_result_type;

    /// An empty handle.
    queue_receiver() noexcept = default;

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
    /// A pop that is cancelled before its handler runs takes nothing.
    /// @par Fairness
    /// FIFO, together with all pops of the queue.
    template <token_for<pop_result_type> Token = default_token_t<executor_type>>
    auto async_pop(Token&& token = Token()) const
    {
        return detail::start_wait(detail::queue_pop_request<Queue, origin_type>{{this->origin()}},
                                  std::forward<Token>(token));
    }

    /// Takes all available items, at least one and at most `max_items`.
    ///
    /// @param max_items At least 1; see `async_pop_n` of the queue.
    /// @par Completes when
    /// As `async_pop_n` of the queue.
    /// @par Completion signature
    /// `void(error_code, std::vector<T>)`
    /// @par Errors
    /// `errc::invalid_argument` if `max_items` is 0; otherwise the errors of `async_pop`.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the queue.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// As `async_pop_n` of the queue.
    /// @par Fairness
    /// FIFO, together with all pops of the queue.
    template <token_for<std::vector<value_type>> Token = default_token_t<executor_type>>
    auto async_pop_n(std::size_t max_items, Token&& token = Token()) const
    {
        return detail::start_wait(
            detail::queue_pop_n_request<Queue, origin_type>{{this->origin()}, max_items},
            std::forward<Token>(token));
    }

    /// Takes the next item, or returns an empty optional if none is available. Never waits.
    ///
    /// @param ec Set to the error of `async_pop` if no item will come, and to
    /// `errc::invalid_argument` if the handle is empty; cleared otherwise.
    [[nodiscard]] std::optional<value_type> try_pop(error_code& ec) const
    {
        if (auto* state = this->checked())
            return state->pop_value_now(ec);
        ec = errc::invalid_argument;
        return std::nullopt;
    }
    /// The same without the reason.
    [[nodiscard]] std::optional<value_type> try_pop() const
    {
        error_code ignored;
        return try_pop(ignored);
    }

    /// Takes all available items, at most `max_items`; returns an empty vector if there are none.
    /// Never waits.
    ///
    /// @param max_items At least 1.
    /// @param ec Set to `errc::invalid_argument` if `max_items` is 0 or the handle is empty, and to
    /// the error of `async_pop` if no item will come; cleared otherwise.
    /// @par Exceptions
    /// As `try_pop_n` of the queue.
    [[nodiscard]] std::vector<value_type> try_pop_n(std::size_t max_items, error_code& ec) const
    {
        if (auto* state = this->checked())
            return state->pop_batch_now(max_items, ec);
        ec = errc::invalid_argument;
        return {};
    }
    /// The same without the reason.
    [[nodiscard]] std::vector<value_type> try_pop_n(std::size_t max_items) const
    {
        error_code ignored;
        return try_pop_n(max_items, ignored);
    }

    /// Reports that a popped item has been processed.
    ///
    /// @par Errors
    /// `errc::negative_count` if every popped item is already done; nothing changes then.
    /// `errc::invalid_argument` if the handle is empty.
    void task_done(error_code& ec) const noexcept
    {
        auto* state = this->checked();
        if (!state)
            ec = errc::invalid_argument;
        else if (state->task_done())
            ec = {};
        else
            ec = errc::negative_count;
    }
    /// Like the overload with `error_code&`, but throws `system_error`.
    void task_done() const
    {
        error_code ec;
        task_done(ec);
        detail::throw_if(ec, "queue_receiver::task_done");
    }

    // ---------------------------------------------------------------------- state ----
    // The numbers are hints: they may be outdated as soon as they are returned.

    /// Returns whether the queue is closed. Items may be left.
    [[nodiscard]] bool is_closed() const { return this->state().is_closed(); }
    /// The number of items in the queue. Items that are granted to pops are not counted.
    [[nodiscard]] std::size_t size() const { return this->state().size(); }
    /// Equivalent to `size() == 0`.
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// The number of pops that wait at the queue.
    [[nodiscard]] std::size_t waiting() const { return this->state().waiting_pops(); }

private:
    friend Queue;
    using base::base;
};

} // namespace turnstile::inline v0_1
