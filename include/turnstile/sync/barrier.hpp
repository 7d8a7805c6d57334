// SPDX-License-Identifier: BSL-1.0
// A barrier: parties wait for each other, round after round.
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

/// What cancelling one party that waits does to the others.
enum class cancelled_party {
    withdraws,      ///< It has not arrived; the others wait on, for somebody in its place.
    breaks_barrier, ///< The others complete with `errc::broken`, as after `abort`.
};

template <>
inline constexpr auto detail::enum_names<cancelled_party> =
    std::to_array<std::string_view>({"withdraws", "breaks_barrier"});

/// What a barrier does beyond waiting.
struct barrier_options {
    /// Called once a round, when all have arrived and before any of them goes: inside the call
    /// of the last one, on its thread, without an internal lock. It may use the barrier. Who
    /// arrives meanwhile belongs to the next round; should that be complete too, its action
    /// runs after this one, in the same call. If it throws, the barrier breaks.
    std::function<void()> action = nullptr;
    cancelled_party on_cancel = cancelled_party::withdraws;
};

/// A meeting point for a number of parties: each arrives and waits, and when all have arrived
/// they go on together. Then the next round begins.
///
/// Broken: after `abort`, an action that threw, or (if made so) the cancellation of a party,
/// all who wait and all who arrive get `errc::broken`, until `reset`.
/// Fairness: rounds take arrivals in the order they came; that is also the order they go in.
/// Destruction: every waiter completes with `operation_aborted`.
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

    /// A barrier for so many parties.
    /// Throws `system_error` with `errc::invalid_argument` if there are none.
    explicit basic_barrier(const std::type_identity_t<Executor>& executor, std::size_t parties,
                           barrier_options options = {})
        : base(executor, checked(parties), std::move(options.action),
               options.on_cancel == cancelled_party::breaks_barrier)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_barrier(Context& context, std::size_t parties, barrier_options options = {})
        : basic_barrier(context.get_executor(), parties, std::move(options))
    {
    }

    /// Arrives, and waits for the others.
    ///
    /// Completes when: all parties of the round have arrived, and its action has run.
    /// Signature: `void(error_code, std::size_t)`; the index, counted from 0 in the order of
    /// arrival, is unique in the round.
    /// Errors: `operation_aborted` if cancelled, or the barrier was destroyed; `errc::broken`;
    /// `errc::closed` if all parties have dropped.
    /// Executor: the handler's associated executor, by default the barrier's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the round is complete, the party has not arrived
    /// (or the barrier breaks, if it was made so). From then on the arrival stands, since
    /// others have gone because of it: a party that is cancelled before its handler runs
    /// completes with `operation_aborted`, but that is all; neither is the barrier broken. An
    /// operation that cannot be started (no memory) has not arrived, unless it was to complete
    /// through an immediate executor that needs memory itself.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<std::size_t> Token = default_token_t<Executor>>
    auto async_arrive_and_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

    /// n parties arrive without waiting, and leave for good: they count in this round, and in
    /// no other. When all are gone, the barrier is closed.
    /// Errors: `errc::invalid_argument` if n is 0, or more than have yet to arrive in this
    /// round; `errc::closed` if none are left; nothing has changed.
    /// Thread safety: as the policy says.
    void arrive_and_drop(std::size_t n, error_code& ec) noexcept
    {
        ec = this->state().arrive_and_drop(n).error();
    }

    /// The same for one party.
    void arrive_and_drop(error_code& ec) noexcept { arrive_and_drop(1, ec); }

    /// The same, throwing `system_error`.
    void arrive_and_drop(std::size_t n = 1)
    {
        error_code ec;
        arrive_and_drop(n, ec);
        detail::throw_if(ec, "barrier::arrive_and_drop");
    }

    /// Completes all who wait with `errc::broken`, and starts a new round; the barrier is not
    /// broken then, even if it was. Thread safety: as the policy says.
    void reset() noexcept { this->state().reset(); }

    /// Breaks the barrier: completes all who wait, and all who arrive, with `errc::broken`,
    /// until `reset`. Thread safety: as the policy says.
    void abort() noexcept { this->state().abort(); }

    /// Whether the barrier is broken. Thread safety: as the policy says.
    [[nodiscard]] bool broken() const noexcept { return this->state().broken(); }
    /// What the action threw, if that broke the barrier. Thread safety: as the policy says.
    [[nodiscard]] std::exception_ptr failure() const noexcept { return this->state().failure(); }
    /// How many parties a round needs: a hint while others drop.
    [[nodiscard]] std::size_t parties() const noexcept { return this->state().parties(); }
    /// How many have arrived, and wait for the rest: a hint while others arrive.
    [[nodiscard]] std::size_t waiting() const noexcept { return this->state().waiting(); }

private:
    struct request {
        using executor_type = Executor;
        using threading = Threading;
        using result_type = std::size_t;
        using waiter_type = detail::barrier_waiter;
        static constexpr detail::request_traits traits{
            .refundable = true, // dropping the index loses nothing
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

/// The usual barrier: any thread, any executor.
using barrier = basic_barrier<>;

namespace local {

/// A barrier for one strand: no atomics, no locks.
using barrier = basic_barrier<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
