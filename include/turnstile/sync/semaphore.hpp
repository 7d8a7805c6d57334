// SPDX-License-Identifier: BSL-1.0
// An asynchronous counting semaphore: n permits at a time, a maximum, resize and close.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/permit_request.hpp>
#include <turnstile/sync/permit.hpp>

#include <cstdint>
#include <type_traits>

namespace turnstile::inline v0_1 {

/// A number of permits that asynchronous code acquires and gives back.
///
/// Fairness: strict FIFO. A small request never overtakes a large one that came before, and
/// `try_acquire` fails while others wait; cancelling the large one lets the small ones go.
/// Destruction: every waiter completes with `operation_aborted`. Permits may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_semaphore
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using state_type = detail::semaphore_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;

    /// What `async_acquire` gives: returns its permits when it goes out of scope.
    using permit_type = permit<basic_semaphore>;

    template <class Other>
    struct rebind_executor {
        using other = basic_semaphore<Other, Threading>;
    };

    /// The maximum of a semaphore that was given none: 2^38 - 1.
    static constexpr std::uint64_t unlimited = state_type::unlimited;

    /// A semaphore with `initial` permits available, and never more than `maximum`.
    /// Throws `system_error` with `errc::invalid_argument` if the maximum is zero, above
    /// `unlimited`, or less than `initial`.
    explicit basic_semaphore(const std::type_identity_t<Executor>& executor, std::uint64_t initial,
                             std::uint64_t maximum = unlimited)
        : base(executor, checked(initial, maximum), maximum)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_semaphore(Context& context, std::uint64_t initial,
                             std::uint64_t maximum = unlimited)
        : basic_semaphore(context.get_executor(), initial, maximum)
    {
    }

    /// Waits for `n` permits, all at once.
    ///
    /// Completes when: n permits are there and everyone who asked before has been served.
    /// Signature: `void(error_code, permit<basic_semaphore>)`; holds n permits on success.
    /// Errors: `operation_aborted` if cancelled, or the semaphore was destroyed;
    /// `errc::closed`; `errc::too_large` if n is, or by `resize` becomes, more than the
    /// maximum; `errc::invalid_argument` if n is 0.
    /// Executor: the handler's associated executor, by default the semaphore's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it holds nothing; permits that had
    /// been granted already go to the next waiters.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), n},
                                  std::forward<Token>(token));
    }

    /// Waits for one permit: `async_acquire(1, token)`, of which all that is said above holds.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return async_acquire(1, std::forward<Token>(token));
    }

    /// Takes n permits if they are there, nobody waits and it is not closed; never waits.
    /// An empty permit means it did not; `ec` is set if waiting would not help, to what
    /// `async_acquire` would say. Thread safety: as the policy says.
    [[nodiscard]] permit_type try_acquire(std::uint64_t n, error_code& ec) noexcept
    {
        state_type& state = this->state();
        const detail::wait_decision decision = state.try_now(n, state_type::as_handle);
        ec = decision.error();
        return decision.is_granted() ? adopt(this, state, n) : permit_type();
    }
    /// The same, without saying why there are none.
    [[nodiscard]] permit_type try_acquire(std::uint64_t n = 1) noexcept
    {
        error_code ignored;
        return try_acquire(n, ignored);
    }

    /// Adds n permits, and serves those who wait. No handler runs inside this call. It is for
    /// permits that were detached, and to add new ones; a `permit` returns its own by itself.
    /// Errors: `errc::over_release` if that would exceed the maximum, `errc::invalid_argument`
    /// if n is 0; the state is unchanged. Without a maximum no release is too much, up to
    /// `unlimited`. Works on a closed semaphore too.
    /// Thread safety: as the policy says.
    void release(std::uint64_t n, error_code& ec) noexcept
    {
        if (n == 0)
            ec = errc::invalid_argument;
        else
            ec = this->state().release(n, state_type::by_hand)
                     ? error_code()
                     : make_error_code(errc::over_release);
    }

    /// The same, throwing `system_error`.
    void release(std::uint64_t n = 1)
    {
        error_code ec;
        release(n, ec);
        detail::throw_if(ec, "semaphore::release");
    }

    /// Changes the maximum, and what is available by the same amount. Permits that are out
    /// beyond a smaller maximum stay valid, and are withheld as they come back; waiters who
    /// ask for more than it complete with `errc::too_large`.
    /// Errors: `errc::invalid_argument` if the maximum is 0, or `unlimited` or more, or if
    /// the semaphore was made without one; the state is unchanged.
    /// Thread safety: as the policy says.
    void resize(std::uint64_t maximum, error_code& ec) noexcept
    {
        if (maximum == 0 || maximum >= unlimited || this->maximum() == unlimited) {
            ec = errc::invalid_argument;
            return;
        }
        ec = {};
        this->state().resize(maximum);
    }

    /// The same, throwing `system_error`.
    void resize(std::uint64_t maximum)
    {
        error_code ec;
        resize(maximum, ec);
        detail::throw_if(ec, "semaphore::resize");
    }

    /// Completes every waiter with `errc::closed`, and so every later `async_acquire`;
    /// `try_acquire` fails. Permits that are out stay valid. Closing twice does nothing.
    /// Thread safety: as the policy says.
    void close() noexcept { this->state().close(); }

    /// Whether `close` was called.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The permits that are there now: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t available() const noexcept { return this->state().available(); }
    /// The maximum, `unlimited` if there is none.
    [[nodiscard]] std::uint64_t maximum() const noexcept { return this->state().maximum(); }

private:
    using request = detail::permit_request<basic_semaphore, permit_type>;
    friend request;
    friend permit_type;

    static permit_type adopt(basic_semaphore*, state_type& state, std::uint64_t n) noexcept
    {
        return permit_type(&state, n);
    }

    static std::uint64_t checked(std::uint64_t initial, std::uint64_t maximum)
    {
        if (maximum == 0 || maximum > unlimited)
            detail::throw_error(errc::invalid_argument,
                                "semaphore: maximum must be in [1, unlimited]");
        if (initial > maximum)
            detail::throw_error(errc::invalid_argument,
                                "semaphore: initial must not be more than maximum");
        return initial;
    }
};

/// The usual semaphore: any thread, any executor.
using semaphore = basic_semaphore<>;

namespace local {

/// A semaphore for one strand: no atomics, no locks.
using semaphore = basic_semaphore<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
