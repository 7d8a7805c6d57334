// SPDX-License-Identifier: BSL-1.0
// A latch: it opens when its count has reached zero, and stays open.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/latch_state.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A count that only decreases. When it reaches zero the latch opens: all waits, present and later
/// ones, complete. A latch is used once; a `counter` also increases, and a `barrier` starts again.
///
/// @par Fairness
/// When the latch opens, all waiters are granted, in the order of their arrival.
/// @par Thread safety
/// Any thread may call any function of a `latch`; a `local::latch` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_latch : public detail::io_object<Executor, Threading, detail::latch_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::latch_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_latch<Other, Threading>;
    };

    /// Makes a latch. Handlers without an associated executor run on `executor`.
    ///
    /// @param count The number of arrivals that open the latch; with 0 it is open at once.
    explicit basic_latch(const std::type_identity_t<Executor>& executor, std::uint64_t count)
        : base(executor, count)
    {
    }

    /// Equivalent to `basic_latch(context.get_executor(), count)`.
    template <detail::execution_context Context>
    explicit basic_latch(Context& context, std::uint64_t count)
        : basic_latch(context.get_executor(), count)
    {
    }

    /// Counts n arrivals, which may be 0, without waiting. No handler runs inside this call.
    ///
    /// @par Errors
    /// `errc::negative_count` if n is greater than the count. The count is unchanged then.
    void count_down(std::uint64_t n, error_code& ec) noexcept
    {
        ec = this->state().count_down(n).error();
    }

    /// Equivalent to `count_down(n, ec)`; throws `system_error` where that sets `ec`.
    void count_down(std::uint64_t n = 1)
    {
        error_code ec;
        count_down(n, ec);
        detail::throw_if(ec, "latch::count_down");
    }

    /// Whether the latch is open; never waits.
    [[nodiscard]] bool try_wait() const noexcept { return this->state().is_set(); }

    /// The number of missing arrivals: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t count() const noexcept { return this->state().count(); }

    /// Waits until the latch is open.
    ///
    /// @par Completes when
    /// the count is zero.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the latch was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the latch's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing, so a cancelled wait loses nothing.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(await_request{{this}}, std::forward<Token>(token));
    }

    /// Counts n arrivals, which may be 0, then waits until the latch is open.
    ///
    /// @par Completes when
    /// the count is zero.
    /// @par Completion signature
    /// `void(error_code)`.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the latch was destroyed;
    /// `errc::negative_count` if n is greater than the count, which is unchanged then.
    /// @par Executor
    /// The handler's associated executor, by default the latch's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// Cancellation ends only the wait. The arrivals stay counted: they were counted when the
    /// operation started, and the latch may have opened because of them. An operation that cannot
    /// be started for lack of memory counts no arrivals, unless it was to complete through an
    /// immediate executor that itself needs memory.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_arrive_and_wait(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(arrive_request{{this}, n}, std::forward<Token>(token));
    }

    /// Equivalent to `async_arrive_and_wait(1, token)`.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_arrive_and_wait(Token&& token = Token())
    {
        return async_arrive_and_wait(1, std::forward<Token>(token));
    }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = void;
        using waiter_type = detail::latch_waiter;

        basic_latch* latch;

        const Executor& executor() const noexcept { return latch->executor(); }
        detail::latch_state<Threading>& state() const noexcept { return latch->state(); }
        void give_back() const noexcept {}
    };

    struct await_request : request {
        static constexpr detail::request_traits traits{.refundable = true};

        detail::wait_decision try_now() const noexcept { return this->state().try_wait(); }
        void prepare(detail::latch_waiter&) const noexcept {}
    };

    struct arrive_request : request {
        static constexpr detail::request_traits traits{.refundable = true, .irrevocable = true};

        std::uint64_t n;

        detail::wait_decision try_now() const noexcept { return this->state().try_arrive(n); }
        void prepare(detail::latch_waiter& w) const noexcept { w.arrivals = n; }
    };
};

/// The latch for any thread and any executor.
using latch = basic_latch<>;

namespace local {

/// The latch for one strand: it needs no atomic operations and no internal lock.
using latch = basic_latch<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
