// SPDX-License-Identifier: BSL-1.0
// An asynchronous mutex. It is FIFO, its waits can be cancelled, and while it is uncontended a
// coroutine acquires it without a trip through the scheduler.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>
#include <turnstile/sync/lock.hpp>

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Mutual exclusion for asynchronous code.
///
/// The lock belongs to its `unique_lock`, not to a thread: it may be unlocked on another thread, or
/// by another coroutine, than the one that acquired it.
///
/// @par Fairness
/// Strictly FIFO. `try_lock` fails while an operation waits.
/// @par Thread safety
/// Any thread may call any function of a `mutex`; a `local::mutex` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Locks may outlive the mutex.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_mutex
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using state_type = detail::semaphore_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;

    /// The result of `async_lock`. It unlocks in its destructor.
    using lock_type = unique_lock<basic_mutex>;

    template <class Other>
    struct rebind_executor {
        using other = basic_mutex<Other, Threading>;
    };

    /// Makes an unlocked mutex. Handlers without an associated executor run on `executor`.
    explicit basic_mutex(const std::type_identity_t<Executor>& executor) : base(executor, 1U, 1U) {}

    /// Equivalent to `basic_mutex(context.get_executor())`.
    template <detail::execution_context Context>
    explicit basic_mutex(Context& context) : basic_mutex(context.get_executor())
    {
    }

    /// Waits for the lock.
    ///
    /// @par Completes when
    /// the mutex is unlocked, and the lock of every earlier request has been released.
    /// @par Completion signature
    /// `void(error_code, unique_lock<basic_mutex>)`; on success the lock is owned.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the mutex was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the mutex's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs does not hold the lock. If the lock
    /// was granted already, it is handed over to the next waiter.
    /// @par Fairness
    /// FIFO.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_lock(Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), {}},
                                  std::forward<Token>(token));
    }

    /// Does not compile, because it would block the thread. Use `co_await async_lock()`.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::mutex does not block the thread: use co_await m.async_lock(), or "
                      "std::unique_lock(m, std::try_to_lock)");
    }

    /// Acquires the lock if the mutex is unlocked and no operation waits for it; never waits. On
    /// success the caller has to `unlock` the mutex, or to adopt the lock with
    /// `unique_lock(m, std::adopt_lock)`.
    [[nodiscard]] bool try_lock() noexcept
    {
        return this->state().try_acquire(1, state_type::no_handle);
    }

    /// Releases a lock that was acquired with `try_lock`, or that its `unique_lock` has given up
    /// with `release`. The lock is handed over to the first waiter, whose handler does not run
    /// inside this call.
    ///
    /// @par Errors
    /// `errc::not_locked` if the mutex is not locked, or if a `unique_lock` owns the lock. The
    /// state is unchanged then.
    void unlock(error_code& ec) noexcept
    {
        ec = this->state().unlock_without_handle() ? error_code()
                                                   : make_error_code(errc::not_locked);
    }

    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock()
    {
        if (!this->state().unlock_without_handle()) [[unlikely]]
            detail::throw_error(errc::not_locked, "mutex::unlock");
    }

    /// Whether the mutex is locked: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked() const noexcept { return this->state().available() == 0; }

private:
    using request = detail::semaphore_request<basic_mutex, lock_type, detail::single_permit>;
    friend request;
    template <class, class>
    friend class detail::lock_handle;

    static lock_type adopt(basic_mutex* mutex, state_type& state, std::uint64_t) noexcept
    {
        return detail::lock_access::make<lock_type>(mutex, state);
    }
};

namespace detail {

template <class Executor, class Threading>
struct lock_operations<basic_mutex<Executor, Threading>> {
    struct exclusive {
        using state_type = semaphore_state<Threading>;
        static bool try_acquire(state_type& state) noexcept
        {
            return state.try_acquire(1, state_type::one_handle);
        }
        TURNSTILE_HOT static bool release(state_type& state, const void* /*handle*/) noexcept
        {
            state.unlock();
            return true;
        }
        static bool adopt(state_type& state) noexcept { return state.adopt_lock(); }
        static void detach(state_type& state, const void* /*handle*/) noexcept
        {
            state.drop_handle();
        }
    };
};

} // namespace detail

/// The mutex for any thread and any executor.
using mutex = basic_mutex<>;

namespace local {

/// The mutex for one strand: it needs no atomic operations and no internal lock.
using mutex = basic_mutex<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
