// SPDX-License-Identifier: BSL-1.0
// An asynchronous mutex: FIFO, cancellable, and without a trip through the scheduler while
// nobody contends for it.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/permit_request.hpp>
#include <turnstile/sync/unique_lock.hpp>

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Mutual exclusion for asynchronous code.
///
/// The lock belongs to whoever holds the `unique_lock`, not to a thread: it may be released on
/// another thread, or by another coroutine, than it was acquired on.
///
/// Fairness: strict FIFO. `try_lock` fails while others wait.
/// Destruction: every waiter completes with `operation_aborted`. Locks may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_mutex
    : public detail::io_object<Executor, Threading, detail::semaphore_state<Threading>> {
    using state_type = detail::semaphore_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;

    /// What `async_lock` gives: unlocks when it goes out of scope.
    using lock_type = unique_lock<basic_mutex>;

    template <class Other>
    struct rebind_executor {
        using other = basic_mutex<Other, Threading>;
    };

    /// An unlocked mutex whose completions run on `executor` by default.
    explicit basic_mutex(const std::type_identity_t<Executor>& executor) : base(executor, 1U, 1U) {}

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_mutex(Context& context) : basic_mutex(context.get_executor())
    {
    }

    /// Waits for the lock.
    ///
    /// Completes when: the lock is free and everyone who asked before has had it.
    /// Signature: `void(error_code, unique_lock<basic_mutex>)`; owns the lock on success.
    /// Errors: `operation_aborted` if cancelled, or the mutex was destroyed.
    /// Executor: the handler's associated executor, by default the mutex's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it holds nothing; if the lock had
    /// been granted already, the next waiter gets it.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_lock(Token&& token = Token())
    {
        return detail::start_wait(request{this, this->state_pointer(), {}},
                                  std::forward<Token>(token));
    }

    /// Does not compile, since it would block the thread: `co_await async_lock()` instead.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::mutex does not block the thread: use co_await m.async_lock(), or "
                      "std::unique_lock(m, std::try_to_lock)");
    }

    /// Takes the lock if it is free and nobody waits for it; never waits. The caller has to
    /// `unlock`, or to adopt the lock: `unique_lock(m, std::adopt_lock)`. Thread safety: as the
    /// policy says.
    [[nodiscard]] bool try_lock() noexcept
    {
        return this->state().try_acquire(1, state_type::by_hand);
    }

    /// Releases a lock that `try_lock` has taken, or whose `unique_lock` has let go of it with
    /// `release`, and hands it to the first waiter if there is one. The waiter's handler does not
    /// run inside this call.
    /// Errors: `errc::not_locked`, also if a `unique_lock` owns the lock; the state is unchanged.
    /// Thread safety: as the policy says.
    void unlock(error_code& ec) noexcept
    {
        ec = this->state().unlock_by_hand() ? error_code() : make_error_code(errc::not_locked);
    }

    /// The same, throwing `system_error`.
    void unlock()
    {
        if (!this->state().unlock_by_hand()) [[unlikely]]
            detail::throw_error(errc::not_locked, "mutex::unlock");
    }

    /// Whether somebody holds the lock: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked() const noexcept { return this->state().available() == 0; }

private:
    using request = detail::permit_request<basic_mutex, lock_type, detail::single_permit>;
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
struct lock_holds<basic_mutex<Executor, Threading>> {
    struct exclusive {
        using state_type = semaphore_state<Threading>;
        static bool try_take(state_type& state) noexcept
        {
            return state.try_acquire(1, state_type::as_handle);
        }
        TURNSTILE_HOT static bool give(state_type& state, const void* /*handle*/) noexcept
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

/// The usual mutex: any thread, any executor.
using mutex = basic_mutex<>;

namespace local {

/// A mutex for one strand: no atomics, no locks.
using mutex = basic_mutex<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
