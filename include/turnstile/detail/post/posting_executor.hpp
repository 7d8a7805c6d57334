// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/intrusive_task.hpp>
#include <turnstile/detail/post/work_guard.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>

#include <concepts>
#include <type_traits>
#include <variant>

namespace turnstile::inline v0_1::detail {

// Where completions go. It looks through any_io_executor to the executors Asio ships, since
// type erasure is the dearest part of a post; anything else stays type-erased.
class TURNSTILE_EXPORT posting_executor {
public:
    // Nowhere: what a state has left when its context is gone.
    posting_executor() noexcept = default;
    posting_executor(const asio::any_io_executor& executor);

    template <class Executor>
        requires(!std::same_as<Executor, posting_executor>)
    explicit posting_executor(const Executor& executor)
        : posting_executor(executor, std::is_constructible<known, const Executor&>())
    {
    }

    // Queues p, never running it inside the call. Returns false, with p still the caller's,
    // if the executor had no memory for it: only executors that Asio does not ship, and
    // strands, ever ask for any.
    bool post(intrusive_task& p) const noexcept;

    // The same where p may just as well run right after the current handler.
    bool post_next(intrusive_task& p) const noexcept;

    void track_in(work_guard& work) const;
    work_guard track() const
    {
        work_guard work;
        track_in(work);
        return work;
    }

    // Whether this is an io_context that has not stopped, or a strand of one, and the caller is
    // not in it; false where that cannot be told.
    bool is_left_while_running() const noexcept;

    // Whether this is an io_context that has stopped, or a strand of one.
    bool has_stopped() const noexcept;

    // Whether this stands for `executor`.
    TURNSTILE_HOT bool is(const asio::any_io_executor& executor) const noexcept
    {
        if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]] {
            const auto* other = executor.target<io_executor>();
            return other && *other == *io;
        }
        return is_other(executor);
    }
    template <class Executor>
    bool is(const Executor& executor) const
    {
        return *this == posting_executor(executor);
    }

    friend bool operator==(const posting_executor& a, const posting_executor& b) noexcept
    {
        return a.executor_ == b.executor_;
    }

private:
    using known = std::variant<io_executor, pool_executor, asio::strand<io_executor>,
                               asio::strand<pool_executor>, asio::strand<asio::any_io_executor>>;
    using any_of = std::variant<std::monostate, io_executor, pool_executor,
                                asio::strand<io_executor>, asio::strand<pool_executor>,
                                asio::strand<asio::any_io_executor>, asio::any_io_executor>;

    template <class Executor>
    posting_executor(const Executor& executor, std::true_type) : executor_(executor)
    {
    }
    template <class Executor>
    posting_executor(const Executor& executor, std::false_type)
        : posting_executor(asio::any_io_executor(executor))
    {
    }

    TURNSTILE_COLD bool is_other(const asio::any_io_executor& executor) const noexcept;

    any_of executor_;
};

// Executors that can be posted to; others (any_completion_executor) are reached by a
// dispatch from the object's own executor.
template <class Executor>
concept postable_executor = std::convertible_to<Executor, asio::any_io_executor>;

} // namespace turnstile::inline v0_1::detail
