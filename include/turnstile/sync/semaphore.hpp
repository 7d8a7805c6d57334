// SPDX-License-Identifier: BSL-1.0
// An asynchronous counting semaphore. An operation acquires any number of permits at once; the
// semaphore can have a maximum, be resized, and be closed.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>
#include <turnstile/sync/permit.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A number of permits that asynchronous code acquires and releases.
///
/// @par Fairness
/// Strictly FIFO. A small request never overtakes an earlier large one, and `try_acquire` fails
/// while an operation waits. When the large request is cancelled, the requests behind it are
/// granted as far as there are permits.
/// @par Thread safety
/// Any thread may call any function of a `semaphore`; a `local::semaphore` is confined to one
/// strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Permits may outlive the semaphore.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_semaphore
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using state_type = detail::semaphore_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;

    /// The result of `async_acquire`. It releases its permits in its destructor.
    using permit_type = permit<basic_semaphore>;

    template <class Other>
    struct rebind_executor {
        using other = basic_semaphore<Other, Threading>;
    };

    /// The maximum of a semaphore that is constructed without one: 2^38 - 1.
    static constexpr std::uint64_t unlimited = state_type::unlimited;

    /// Makes a semaphore. Handlers without an associated executor run on `executor`. Throws
    /// `system_error` with `errc::invalid_argument` if a rule below is broken.
    ///
    /// @param initial The permits that are available at first; not more than `maximum`.
    /// @param maximum The most permits that can ever be available; in [1, `unlimited`].
    explicit basic_semaphore(const std::type_identity_t<Executor>& executor, std::uint64_t initial,
                             std::uint64_t maximum = unlimited)
        : base(executor, checked(initial, maximum), maximum)
    {
    }

    /// Equivalent to `basic_semaphore(context.get_executor(), initial, maximum)`.
    template <detail::execution_context Context>
    explicit basic_semaphore(Context& context, std::uint64_t initial,
                             std::uint64_t maximum = unlimited)
        : basic_semaphore(context.get_executor(), initial, maximum)
    {
    }

    /// Waits for `n` permits, which are acquired together.
    ///
    /// @par Completes when
    /// n permits are available and every earlier request has been granted.
    /// @par Completion signature
    /// `void(error_code, permit<basic_semaphore>)`; on success it holds n permits.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the semaphore was destroyed;
    /// `errc::closed`; `errc::too_large` if n is greater than the maximum, or becomes so by
    /// `resize`; `errc::invalid_argument` if n is 0.
    /// @par Executor
    /// The handler's associated executor, by default the semaphore's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds no permits. Permits that were
    /// granted already are handed over to the next waiters.
    /// @par Fairness
    /// FIFO.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), n},
                                  std::forward<Token>(token));
    }

    /// Equivalent to `async_acquire(1, token)`.
    template <token_for<permit_type> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token())
    {
        return async_acquire(1, std::forward<Token>(token));
    }

    /// Acquires n permits if they are available and no operation waits; never waits. Returns an
    /// empty permit on failure.
    ///
    /// @par Errors
    /// If waiting would not help, `ec` is the error of `async_acquire`: `errc::closed`,
    /// `errc::too_large` or `errc::invalid_argument`. It is clear if the permits are only not
    /// available at the moment.
    [[nodiscard]] permit_type try_acquire(std::uint64_t n, error_code& ec) noexcept
    {
        state_type& state = this->state();
        const detail::wait_decision decision = state.try_now(n, state_type::one_handle);
        ec = decision.error();
        return decision.is_granted() ? adopt(this, state, n) : permit_type();
    }
    /// Equivalent to `try_acquire(n, ec)` with an `ec` that is ignored.
    [[nodiscard]] permit_type try_acquire(std::uint64_t n = 1) noexcept
    {
        error_code ignored;
        return try_acquire(n, ignored);
    }

    /// Adds n permits and grants them to waiters, whose handlers do not run inside this call. Use
    /// it for permits that were detached, or to add new ones; a `permit` releases its own. It also
    /// works on a closed semaphore.
    ///
    /// @par Errors
    /// `errc::over_release` if the available permits would exceed the maximum;
    /// `errc::invalid_argument` if n is 0. The state is unchanged then.
    void release(std::uint64_t n, error_code& ec) noexcept
    {
        if (n == 0)
            ec = errc::invalid_argument;
        else
            ec = this->state().release(n, state_type::no_handle)
                     ? error_code()
                     : make_error_code(errc::over_release);
    }

    /// Equivalent to `release(n, ec)`; throws `system_error` where that sets `ec`.
    void release(std::uint64_t n = 1)
    {
        error_code ec;
        release(n, ec);
        detail::throw_if(ec, "semaphore::release");
    }

    /// Changes the maximum, and the available permits by the same amount. If more permits are
    /// acquired than a smaller maximum allows, they stay valid, and the excess is withheld when it
    /// is released. Waiters that need more than the new maximum complete with `errc::too_large`.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `maximum` is 0 or not less than `unlimited`, or if the
    /// semaphore was constructed without a maximum. The state is unchanged then.
    void resize(std::uint64_t maximum, error_code& ec) noexcept
    {
        if (maximum == 0 || maximum >= unlimited || this->maximum() == unlimited) {
            ec = errc::invalid_argument;
            return;
        }
        ec = {};
        this->state().resize(maximum);
    }

    /// Equivalent to `resize(maximum, ec)`; throws `system_error` where that sets `ec`.
    void resize(std::uint64_t maximum)
    {
        error_code ec;
        resize(maximum, ec);
        detail::throw_if(ec, "semaphore::resize");
    }

    /// Closes the semaphore: every waiter and every later `async_acquire` complete with
    /// `errc::closed`, and `try_acquire` fails. Acquired permits stay valid. Closing it again has
    /// no effect.
    void close() noexcept { this->state().close(); }

    /// Whether `close` was called.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }
    /// The number of available permits: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t available() const noexcept { return this->state().available(); }
    /// The maximum; `unlimited` if the semaphore was constructed without one.
    [[nodiscard]] std::uint64_t maximum() const noexcept { return this->state().maximum(); }

private:
    using request = detail::semaphore_request<basic_semaphore, permit_type>;
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
                                "semaphore: initial must not be greater than maximum");
        return initial;
    }
};

/// The semaphore for any thread and any executor.
using semaphore = basic_semaphore<>;

namespace local {

/// The semaphore for one strand: it needs no atomic operations and no internal lock.
using semaphore = basic_semaphore<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
