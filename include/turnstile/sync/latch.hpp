// SPDX-License-Identifier: BSL-1.0
// A latch: opens, for good, when its count has come down to zero.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/latch_state.hpp>

#include <cstdint>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// A count that only goes down; those who wait go when it is zero, and so does everybody who
/// comes later. For one use: a `counter` goes up as well, a `barrier` starts again.
///
/// Fairness: all who wait when it opens go, in the order they came.
/// Destruction: every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_latch : public detail::io_object<Executor, Threading, detail::latch_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::latch_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_latch<Other, Threading>;
    };

    /// A latch that opens after `count` arrivals; with 0 it is open from the start.
    explicit basic_latch(const std::type_identity_t<Executor>& executor, std::uint64_t count)
        : base(executor, count)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_latch(Context& context, std::uint64_t count)
        : basic_latch(context.get_executor(), count)
    {
    }

    /// Counts n arrivals (which may be 0), without waiting. No handler runs inside this call.
    /// Errors: `errc::negative_count` if fewer than n are left; the count is unchanged.
    /// Thread safety: as the policy says.
    void count_down(std::uint64_t n, error_code& ec) noexcept
    {
        ec = this->state().count_down(n).error();
    }

    /// The same, throwing `system_error`.
    void count_down(std::uint64_t n = 1)
    {
        error_code ec;
        count_down(n, ec);
        detail::throw_if(ec, "latch::count_down");
    }

    /// Whether the latch is open; never waits. Thread safety: as the policy says.
    [[nodiscard]] bool try_wait() const noexcept { return this->state().is_raised(); }

    /// The arrivals that are still missing: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t count() const noexcept { return this->state().count(); }

    /// Waits until the latch is open.
    ///
    /// Completes when: the count is zero, now or later.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the latch was destroyed.
    /// Executor: the handler's associated executor, by default the latch's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(await_request{{this}}, std::forward<Token>(token));
    }

    /// Counts n arrivals (which may be 0), then waits until the latch is open.
    ///
    /// Completes when: the count is zero, now or later.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the latch was destroyed;
    /// `errc::negative_count` if fewer than n are left, and the count is unchanged.
    /// Executor: the handler's associated executor, by default the latch's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelling ends the waiting, and that has consumed nothing. The arrival
    /// stands: it was made when the operation started, and others may have gone since. An
    /// operation that cannot be started (no memory) has not arrived, unless it was to complete
    /// through an immediate executor that needs memory itself.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_arrive_and_wait(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(arrive_request{{this}, n}, std::forward<Token>(token));
    }

    /// Arrives once, then waits.
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

/// The usual latch: any thread, any executor.
using latch = basic_latch<>;

namespace local {

/// A latch for one strand: no atomics, no locks.
using latch = basic_latch<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
