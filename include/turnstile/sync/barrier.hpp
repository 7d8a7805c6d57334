// SPDX-License-Identifier: BSL-1.0
// A barrier: a number of parties wait for each other, round after round.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/sync/detail/barrier_state.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// The effect of cancelling one party's wait on the other parties.
enum class cancelled_party {
    withdraws,      ///< Its arrival is undone; the others wait for another arrival.
    breaks_barrier, ///< The others complete with `errc::broken`, as after `abort`.
};

template <>
inline constexpr auto detail::enum_names<cancelled_party> =
    std::to_array<std::string_view>({"withdraws", "breaks_barrier"});

/// The options of a barrier.
struct barrier_options {
    /// Called once in each round, after all parties have arrived and before any of them is
    /// granted: inside the call of the last arrival, on its thread, and without an internal lock,
    /// so it may use the barrier. Arrivals meanwhile belong to the next round; if that becomes
    /// complete too, its action runs after this one, in the same call. If the action throws, the
    /// barrier breaks. Default: none. Rule: none.
    std::function<void()> action = nullptr;
    /// The effect of cancelling a wait. Default: `withdraws`. Rule: none.
    cancelled_party on_cancel = cancelled_party::withdraws;
};

/// A meeting point for a number of parties: each arrives and waits, and when all have arrived all
/// waits complete. Then the next round begins.
///
/// A barrier is broken by `abort`, by an action that throws, and, with
/// `cancelled_party::breaks_barrier`, by the cancellation of a wait. While it is broken, present
/// and later waits complete with `errc::broken`; `reset` ends that.
///
/// @par Fairness
/// A round consists of the first arrivals, and grants them in the order of their arrival.
/// @par Thread safety
/// Any thread may call any function of a `barrier`; a `local::barrier` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_barrier
    : public detail::io_object<Executor, Threading, detail::barrier_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::barrier_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_barrier<Other, Threading>;
    };

    /// Makes a barrier. Handlers without an associated executor run on `executor`. Throws
    /// `system_error` with `errc::invalid_argument` if a rule is broken.
    ///
    /// @param parties The number of arrivals that complete a round. Rule: not 0.
    /// @param options See `barrier_options`.
    explicit basic_barrier(const std::type_identity_t<Executor>& executor, std::size_t parties,
                           barrier_options options = {})
        : base(executor, checked(parties), std::move(options.action),
               options.on_cancel == cancelled_party::breaks_barrier)
    {
    }

    /// Equivalent to `basic_barrier(context.get_executor(), parties, options)`.
    template <detail::execution_context Context>
    explicit basic_barrier(Context& context, std::size_t parties, barrier_options options = {})
        : basic_barrier(context.get_executor(), parties, std::move(options))
    {
    }

    /// Arrives and waits for the other parties.
    ///
    /// @par Completes when
    /// all parties of the round have arrived and the action has run.
    /// @par Completion signature
    /// `void(error_code, std::size_t)`; the index of the arrival, counted from 0 in the order of
    /// arrival and unique in the round.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the barrier was destroyed; `errc::broken`;
    /// `errc::closed` if all parties have dropped out.
    /// @par Executor
    /// The handler's associated executor, by default the barrier's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// Cancellation before the round is complete undoes the arrival, or breaks the barrier, as
    /// `barrier_options::on_cancel` says. Once the round is complete the arrival stays counted,
    /// because other parties were granted because of it: an operation that is cancelled before its
    /// handler runs completes with `operation_aborted`, and the barrier is not broken. An operation
    /// that cannot be started for lack of memory has not arrived, unless it was to complete through
    /// an immediate executor that itself needs memory.
    /// @par Fairness
    /// FIFO.
    template <token_for<std::size_t> Token = default_token_t<Executor>>
    auto async_arrive_and_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

    /// n parties arrive without waiting and drop out: they count in this round, and no later round
    /// waits for them. When all parties have dropped out, the barrier is closed.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if n is 0, or greater than the number of missing arrivals of this
    /// round; `errc::closed` if no parties are left. The state is unchanged then.
    void arrive_and_drop(std::size_t n, error_code& ec) noexcept
    {
        ec = this->state().arrive_and_drop(n).error();
    }

    /// Equivalent to `arrive_and_drop(1, ec)`.
    void arrive_and_drop(error_code& ec) noexcept { arrive_and_drop(1, ec); }

    /// Equivalent to `arrive_and_drop(n, ec)`; throws `system_error` where that sets `ec`.
    void arrive_and_drop(std::size_t n = 1)
    {
        error_code ec;
        arrive_and_drop(n, ec);
        detail::throw_if(ec, "barrier::arrive_and_drop");
    }

    /// Completes every wait with `errc::broken` and starts a new round. The barrier is not broken
    /// afterwards, even if it was before.
    void reset() noexcept { this->state().reset(); }

    /// Breaks the barrier: present and later waits complete with `errc::broken`, until `reset`.
    void abort() noexcept { this->state().abort(); }

    /// Whether the barrier is broken.
    [[nodiscard]] bool broken() const noexcept { return this->state().broken(); }
    /// The exception of the action, if that has broken the barrier; else null.
    [[nodiscard]] std::exception_ptr failure() const noexcept { return this->state().failure(); }
    /// The number of parties that a round needs: a hint while parties drop out.
    [[nodiscard]] std::size_t parties() const noexcept { return this->state().parties(); }
    /// The number of parties that have arrived and wait for the rest: a hint, outdated as soon as
    /// it is returned.
    [[nodiscard]] std::size_t waiting() const noexcept { return this->state().waiting(); }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = std::size_t;
        using waiter_type = detail::barrier_waiter;
        static constexpr detail::request_traits traits{
            .refundable = true, // an index can be dropped without loss
            .irrevocable = true,
            .result = detail::result_source::waiter,
        };

        basic_barrier* barrier;
        std::size_t index = 0;

        const Executor& executor() const noexcept { return barrier->executor(); }
        detail::barrier_state<Threading>& state() const noexcept { return barrier->state(); }
        detail::wait_decision try_now() noexcept { return state().try_arrive(index); }
        void give_back() const noexcept {}
        void prepare(detail::barrier_waiter&) const noexcept {}
        std::size_t take_now() const noexcept { return index; }
        std::size_t take(detail::barrier_waiter& w) const noexcept { return w.index; }
    };

    static std::size_t checked(std::size_t parties)
    {
        if (parties == 0)
            detail::throw_error(errc::invalid_argument, "barrier: parties must not be 0");
        return parties;
    }
};

/// The barrier for any thread and any executor.
using barrier = basic_barrier<>;

namespace local {

/// The barrier for one strand: it needs no atomic operations and no internal lock.
using barrier = basic_barrier<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
