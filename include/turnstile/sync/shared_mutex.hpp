// SPDX-License-Identifier: BSL-1.0
// An asynchronous read-write lock with a choice of fairness, and with upgrade and downgrade.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/shared_mutex_state.hpp>
#include <turnstile/sync/lock.hpp>
#include <turnstile/sync/lock_preference.hpp>

#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A mutex that is held by any number of readers, or by one writer.
///
/// One of the readers may hold the upgradable lock: it shares the mutex with the other readers,
/// excludes writers and other upgradable locks, and can be upgraded to the exclusive lock without
/// being unlocked. A lock belongs to its `unique_lock`, `shared_lock` or `upgrade_lock`, not to a
/// thread.
///
/// @par Fairness
/// See `lock_preference`. An upgrade precedes every other waiter, and holds back new readers as a
/// waiting writer does. The `try_` functions fail while an operation waits, except that under
/// `prefer_readers` the functions for readers ignore waiting writers.
/// @par Thread safety
/// Any thread may call any function of a `shared_mutex`; a `local::shared_mutex` is confined to
/// one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Locks may outlive the mutex.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_shared_mutex
    : public detail::io_object<Executor, Threading, detail::shared_mutex_state<Threading>> {
    using state_type = detail::shared_mutex_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;
    using lock_mode = detail::lock_mode;

public:
    using typename base::executor_type;

    /// The result of `async_lock`.
    using lock_type = unique_lock<basic_shared_mutex>;
    /// The result of `async_lock_shared`.
    using shared_lock_type = shared_lock<basic_shared_mutex>;
    /// The result of `async_lock_upgrade`.
    using upgrade_lock_type = upgrade_lock<basic_shared_mutex>;

    template <class Other>
    struct rebind_executor {
        using other = basic_shared_mutex<Other, Threading>;
    };

    /// Makes an unlocked mutex. Handlers without an associated executor run on `executor`.
    explicit basic_shared_mutex(const std::type_identity_t<Executor>& executor,
                                lock_preference preference = lock_preference::fair)
        : base(executor, preference)
    {
    }

    /// Equivalent to `basic_shared_mutex(context.get_executor(), preference)`.
    template <detail::execution_context Context>
    explicit basic_shared_mutex(Context& context,
                                lock_preference preference = lock_preference::fair)
        : basic_shared_mutex(context.get_executor(), preference)
    {
    }

    /// Waits for the exclusive lock, to write.
    ///
    /// @par Completes when
    /// no lock is held and the preference gives precedence to no other waiter.
    /// @par Completion signature
    /// `void(error_code, unique_lock<basic_shared_mutex>)`; on success the lock is owned.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the mutex was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the mutex's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs does not hold the lock. The waiters
    /// that it held back are granted at once.
    /// @par Fairness
    /// See `lock_preference`.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_lock(Token&& token = Token())
    {
        return detail::start_wait(exclusive_request(), std::forward<Token>(token));
    }

    /// Waits for a shared lock, to read. In every other respect as `async_lock`.
    ///
    /// @par Completes when
    /// no writer holds the lock and the preference gives precedence to no waiting writer.
    /// @par Completion signature
    /// `void(error_code, shared_lock<basic_shared_mutex>)`; on success the lock is owned.
    template <token_for<shared_lock_type> Token = default_token_t<Executor>>
    auto async_lock_shared(Token&& token = Token())
    {
        return detail::start_wait(
            request<shared_lock_type, lock_mode::shared>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Waits for the upgradable lock, to read and perhaps to write later. In every other respect
    /// as `async_lock`.
    ///
    /// @par Completes when
    /// neither a writer nor another upgradable lock holds the mutex, and the preference gives
    /// precedence to neither.
    /// @par Completion signature
    /// `void(error_code, upgrade_lock<basic_shared_mutex>)`; on success the lock is owned.
    template <token_for<upgrade_lock_type> Token = default_token_t<Executor>>
    auto async_lock_upgrade(Token&& token = Token())
    {
        return detail::start_wait(
            request<upgrade_lock_type, lock_mode::upgradable>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Waits to exchange an upgradable lock for the exclusive one. No other writer gets the lock
    /// in between.
    ///
    /// @param lock Must live until the operation completes. It is empty after success, and
    /// unchanged after an error.
    ///
    /// @par Completes when
    /// all other readers have unlocked.
    /// @par Completion signature
    /// `void(error_code, unique_lock<basic_shared_mutex>)`; on success the lock is owned.
    /// @par Errors
    /// `errc::upgrade_conflict` if another upgrade waits already: unlock, so that it can proceed.
    /// `errc::not_locked` if `lock` owns no lock of this mutex, or was unlocked while the upgrade
    /// waited. `operation_aborted` if the wait was cancelled or the mutex was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the mutex's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// If the operation is cancelled before its handler runs, `lock` still owns its upgradable
    /// lock, even if the exclusive one was granted already. Readers that the upgrade held back are
    /// granted.
    /// @par Fairness
    /// An upgrade precedes every other waiter.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_upgrade(upgrade_lock_type& lock, Token&& token = Token())
    {
        return detail::start_wait(
            upgrade<upgrade_lock_type, lock_mode::upgradable>(exclusive_request(), lock),
            std::forward<Token>(token));
    }

    /// As the other overload, for a shared lock. Of several readers that try at the same time only
    /// the first can succeed; the others fail with `errc::upgrade_conflict` and keep their shared
    /// lock.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_upgrade(shared_lock_type& lock, Token&& token = Token())
    {
        return detail::start_wait(
            upgrade<shared_lock_type, lock_mode::shared>(exclusive_request(), lock),
            std::forward<Token>(token));
    }

    /// Exchanges an exclusive lock for a shared one and grants waiting readers. No writer gets the
    /// lock in between.
    ///
    /// @par Errors
    /// `errc::not_locked` if `lock` owns no lock of this mutex. It is unchanged then, and the
    /// result is empty.
    shared_lock_type downgrade(lock_type&& lock, error_code& ec) noexcept
    {
        return downgrade_from(lock_mode::exclusive, lock, ec);
    }

    /// As the other overload, for an upgradable lock.
    shared_lock_type downgrade(upgrade_lock_type&& lock, error_code& ec) noexcept
    {
        return downgrade_from(lock_mode::upgradable, lock, ec);
    }

    /// Equivalent to `downgrade(std::forward<Lock>(lock), ec)`; throws `system_error` where that
    /// sets `ec`.
    template <class Lock>
    shared_lock_type downgrade(Lock&& lock)
    {
        error_code ec;
        shared_lock_type shared = downgrade(std::forward<Lock>(lock), ec);
        detail::throw_if(ec, "shared_mutex::downgrade");
        return shared;
    }

    /// Does not compile, because it would block the thread. Use `co_await async_lock()`.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::shared_mutex does not block the thread: use co_await "
                      "m.async_lock(), or std::unique_lock(m, std::try_to_lock)");
    }
    /// Does not compile, because it would block the thread. Use `co_await async_lock_shared()`.
    template <class Never = void>
    void lock_shared()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::shared_mutex does not block the thread: use co_await "
                      "m.async_lock_shared(), or std::shared_lock(m, std::try_to_lock)");
    }

    /// Acquires the exclusive lock if that needs no waiting; never waits. On success the caller
    /// has to unlock the mutex, or to adopt the lock, here with `unique_lock(m, std::adopt_lock)`.
    [[nodiscard]] bool try_lock() noexcept { return acquire(lock_mode::exclusive); }
    /// As `try_lock`, for a shared lock.
    [[nodiscard]] bool try_lock_shared() noexcept { return acquire(lock_mode::shared); }
    /// As `try_lock`, for the upgradable lock.
    [[nodiscard]] bool try_lock_upgrade() noexcept { return acquire(lock_mode::upgradable); }

    /// Releases an exclusive lock that was acquired with `try_lock`, or that its `unique_lock` has
    /// given up with `release`, and grants waiters. No handler runs inside this call.
    ///
    /// @par Errors
    /// `errc::not_locked` if there is no such lock, also if a `unique_lock` owns it. The state is
    /// unchanged then.
    void unlock(error_code& ec) noexcept { release(lock_mode::exclusive, ec); }
    /// As `unlock(ec)`, for a shared lock.
    void unlock_shared(error_code& ec) noexcept { release(lock_mode::shared, ec); }
    /// As `unlock(ec)`, for the upgradable lock.
    void unlock_upgrade(error_code& ec) noexcept { release(lock_mode::upgradable, ec); }

    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock() { release(lock_mode::exclusive, "shared_mutex::unlock"); }
    /// Equivalent to `unlock_shared(ec)`; throws `system_error` where that sets `ec`.
    void unlock_shared() { release(lock_mode::shared, "shared_mutex::unlock_shared"); }
    /// Equivalent to `unlock_upgrade(ec)`; throws `system_error` where that sets `ec`.
    void unlock_upgrade() { release(lock_mode::upgradable, "shared_mutex::unlock_upgrade"); }

    /// Whether the exclusive lock is held: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked() const noexcept
    {
        return this->state().is_held(lock_mode::exclusive);
    }
    /// Whether any shared lock is held: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked_shared() const noexcept
    {
        return this->state().is_held(lock_mode::shared);
    }
    /// Whether the upgradable lock is held: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked_upgrade() const noexcept
    {
        return this->state().is_held(lock_mode::upgradable);
    }
    /// The preference given at construction.
    [[nodiscard]] lock_preference preference() const noexcept { return this->state().preference(); }

private:
    template <class Lock, lock_mode wanted>
    using request = detail::shared_mutex_request<basic_shared_mutex, Lock, wanted>;
    template <class Lock, lock_mode held>
    using upgrade = detail::upgrade_request<basic_shared_mutex, Lock, held>;
    template <class Owner, class Lock, lock_mode wanted>
    friend struct detail::shared_mutex_request;
    template <class, class>
    friend class detail::lock_handle;

    static constexpr auto by_caller = state_type::held_by::caller;

    auto exclusive_request() noexcept
    {
        return request<lock_type, lock_mode::exclusive>{this, this->state_pointer()};
    }
    bool acquire(lock_mode wanted) noexcept
    {
        return this->state().try_acquire(lock_mode::nothing, wanted, by_caller);
    }
    bool release(lock_mode held) noexcept
    {
        return this->state().release(held, lock_mode::nothing, by_caller);
    }
    void release(lock_mode held, error_code& ec) noexcept
    {
        ec = release(held) ? error_code() : make_error_code(errc::not_locked);
    }
    void release(lock_mode held, const char* where)
    {
        if (!release(held)) [[unlikely]]
            detail::throw_error(errc::not_locked, where);
    }

    template <class Lock>
    shared_lock_type downgrade_from(lock_mode held, Lock& lock, error_code& ec) noexcept
    {
        state_type& state = this->state();
        if (detail::lock_access::state_of(lock) != &state ||
            !state.release(held, lock_mode::shared)) {
            ec = errc::not_locked;
            return {};
        }
        ec = {};
        detail::lock_access::disown(lock);
        return detail::lock_access::make<shared_lock_type>(this, state);
    }
};

namespace detail {

template <class Threading, lock_mode mode>
struct shared_mutex_lock_operations {
    using state_type = shared_mutex_state<Threading>;
    static bool try_acquire(state_type& state) noexcept
    {
        return state.try_acquire(lock_mode::nothing, mode);
    }
    TURNSTILE_HOT static bool release(state_type& state, const void* handle) noexcept
    {
        return state.release(mode, lock_mode::nothing, state_type::held_by::handle, handle);
    }
    static bool adopt(state_type& state) noexcept { return state.adopt(mode); }
    static void detach(state_type& state, const void* handle) noexcept
    {
        state.detach(mode, handle);
    }
};

template <class Executor, class Threading>
struct lock_operations<basic_shared_mutex<Executor, Threading>> {
    using exclusive = shared_mutex_lock_operations<Threading, lock_mode::exclusive>;
    using shared = shared_mutex_lock_operations<Threading, lock_mode::shared>;
    using upgradable = shared_mutex_lock_operations<Threading, lock_mode::upgradable>;
};

} // namespace detail

/// The read-write lock for any thread and any executor.
using shared_mutex = basic_shared_mutex<>;

namespace local {

/// The read-write lock for one strand: it needs no atomic operations and no internal lock.
using shared_mutex = basic_shared_mutex<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
