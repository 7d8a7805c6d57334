// SPDX-License-Identifier: BSL-1.0
// An asynchronous read-write lock: fair or not, as you choose, with upgrade and downgrade.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/shared_mutex_request.hpp>
#include <turnstile/sync/shared_lock.hpp>
#include <turnstile/sync/unique_lock.hpp>
#include <turnstile/sync/upgrade_lock.hpp>

#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Any number of readers at a time, or one writer.
///
/// One of the readers may hold an upgradable lock: it reads beside the others, keeps writers
/// and other upgradable locks out, and can become the writer without letting go.
/// A lock belongs to whoever has its value, not to a thread.
///
/// Fairness: as the `lock_preference` says. Under `fair` each waits for those before it that
/// it cannot be inside together with, and for no others: a queued writer stops new readers,
/// and its release admits all readers up to the next writer. Under `prefer_readers` queued
/// writers stop nobody; under `prefer_writers` readers wait while a writer does. An upgrade
/// goes before all who wait, and stops new readers just as a queued writer does.
/// `try_` functions fail while others wait; but under `prefer_readers` those of readers do not
/// mind writers.
/// Destruction: every waiter completes with `operation_aborted`. Locks may outlive it.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_shared_mutex
    : public detail::io_object<Executor, Threading, detail::shared_mutex_state<Threading>> {
    using state_type = detail::shared_mutex_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;
    using lock_mode = detail::lock_mode;

public:
    using typename base::executor_type;

    /// What `async_lock` gives.
    using lock_type = unique_lock<basic_shared_mutex>;
    /// What `async_lock_shared` gives.
    using shared_lock_type = shared_lock<basic_shared_mutex>;
    /// What `async_lock_upgrade` gives.
    using upgrade_lock_type = upgrade_lock<basic_shared_mutex>;

    template <class Other>
    struct rebind_executor {
        using other = basic_shared_mutex<Other, Threading>;
    };

    /// An unlocked mutex whose completions run on `executor` by default.
    explicit basic_shared_mutex(const std::type_identity_t<Executor>& executor,
                                lock_preference preference = lock_preference::fair)
        : base(executor, preference)
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_shared_mutex(Context& context,
                                lock_preference preference = lock_preference::fair)
        : basic_shared_mutex(context.get_executor(), preference)
    {
    }

    /// Waits for the exclusive lock, to write.
    ///
    /// Completes when: nobody else holds any lock, and it is this one's turn.
    /// Signature: `void(error_code, unique_lock<basic_shared_mutex>)`.
    /// Errors: `operation_aborted` if cancelled, or the mutex was destroyed.
    /// Executor: the handler's associated executor, by default the mutex's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it holds nothing; those it kept
    /// waiting go at once.
    /// Fairness: as the preference says. Thread safety: as the policy says.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_lock(Token&& token = Token())
    {
        return detail::start_wait(exclusive_request(), std::forward<Token>(token));
    }

    /// Waits for a shared lock, to read.
    ///
    /// Completes when: no writer holds the lock, and none goes before this reader.
    /// Signature: `void(error_code, shared_lock<basic_shared_mutex>)`.
    /// Everything else: as `async_lock`.
    template <token_for<shared_lock_type> Token = default_token_t<Executor>>
    auto async_lock_shared(Token&& token = Token())
    {
        return detail::start_wait(
            request<shared_lock_type, lock_mode::shared>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Waits for the upgradable lock, to read and perhaps to write later.
    ///
    /// Completes when: no writer and no other upgradable lock is there or goes before.
    /// Signature: `void(error_code, upgrade_lock<basic_shared_mutex>)`.
    /// Everything else: as `async_lock`.
    template <token_for<upgrade_lock_type> Token = default_token_t<Executor>>
    auto async_lock_upgrade(Token&& token = Token())
    {
        return detail::start_wait(
            request<upgrade_lock_type, lock_mode::upgradable>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Waits to make an upgradable lock the exclusive one; nobody writes in between. `lock`
    /// must live until this completes. It is left empty on success, and as it was otherwise.
    ///
    /// Completes when: all other readers have gone.
    /// Signature: `void(error_code, unique_lock<basic_shared_mutex>)`.
    /// Errors: `errc::upgrade_conflict` if another upgrade waits already: let go, so that it
    /// can proceed. `errc::not_locked` if `lock` holds no lock of this
    /// mutex, or is unlocked meanwhile. `operation_aborted` if cancelled, or the mutex was
    /// destroyed.
    /// Executor: the handler's associated executor, by default the mutex's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, `lock` still holds its upgradable
    /// lock, even if the exclusive one had been granted; readers who may go do.
    /// Fairness: before all who wait. Thread safety: as the policy says.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_upgrade(upgrade_lock_type& lock, Token&& token = Token())
    {
        return detail::start_wait(
            upgrade<upgrade_lock_type, lock_mode::upgradable>(exclusive_request(), lock),
            std::forward<Token>(token));
    }

    /// The same for a shared lock. Of several readers who try at the same time only the first can
    /// succeed; the others get `errc::upgrade_conflict`, and keep their shared lock.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_upgrade(shared_lock_type& lock, Token&& token = Token())
    {
        return detail::start_wait(
            upgrade<shared_lock_type, lock_mode::shared>(exclusive_request(), lock),
            std::forward<Token>(token));
    }

    /// Makes an exclusive lock a shared one, and admits readers; a writer never gets in
    /// between. Errors: `errc::not_locked` if `lock` holds no lock of this mutex; then it
    /// stays as it was, and the result is empty. Thread safety: as the policy says.
    shared_lock_type downgrade(lock_type&& lock, error_code& ec) noexcept
    {
        return lower(lock, lock_mode::exclusive, ec);
    }

    /// The same for an upgradable lock: it can no longer be upgraded for sure.
    shared_lock_type downgrade(upgrade_lock_type&& lock, error_code& ec) noexcept
    {
        return lower(lock, lock_mode::upgradable, ec);
    }

    /// The same, throwing `system_error`.
    template <class Lock>
    shared_lock_type downgrade(Lock&& lock)
    {
        error_code ec;
        shared_lock_type lowered = downgrade(std::forward<Lock>(lock), ec);
        detail::throw_if(ec, "shared_mutex::downgrade");
        return lowered;
    }

    /// Do not compile, since they would block the thread: `co_await async_lock()`, or
    /// `co_await async_lock_shared()` instead.
    template <class Never = void>
    void lock()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::shared_mutex does not block the thread: use co_await "
                      "m.async_lock(), or std::unique_lock(m, std::try_to_lock)");
    }
    template <class Never = void>
    void lock_shared()
    {
        static_assert(!std::is_void_v<Never>,
                      "turnstile::shared_mutex does not block the thread: use co_await "
                      "m.async_lock_shared(), or std::shared_lock(m, std::try_to_lock)");
    }

    /// Take the lock if that needs no waiting; they never wait. The caller has to unlock, or to
    /// adopt the lock, for example with `shared_lock(m, std::adopt_lock)`. Thread safety: as the
    /// policy says.
    [[nodiscard]] bool try_lock() noexcept { return take(lock_mode::exclusive); }
    [[nodiscard]] bool try_lock_shared() noexcept { return take(lock_mode::shared); }
    [[nodiscard]] bool try_lock_upgrade() noexcept { return take(lock_mode::upgradable); }

    /// Release a lock that a `try_` function has taken, or whose `unique_lock`, `shared_lock` or
    /// `upgrade_lock` has let go of it with `release`, and grant those who may go. No handler runs
    /// inside these calls.
    /// Errors: `errc::not_locked` if there is no such lock, also if values own one; the state is
    /// unchanged. Thread safety: as the policy says.
    void unlock(error_code& ec) noexcept { give(lock_mode::exclusive, ec); }
    void unlock_shared(error_code& ec) noexcept { give(lock_mode::shared, ec); }
    void unlock_upgrade(error_code& ec) noexcept { give(lock_mode::upgradable, ec); }

    /// The same, throwing `system_error`.
    void unlock() { give(lock_mode::exclusive, "shared_mutex::unlock"); }
    void unlock_shared() { give(lock_mode::shared, "shared_mutex::unlock_shared"); }
    void unlock_upgrade() { give(lock_mode::upgradable, "shared_mutex::unlock_upgrade"); }

    /// Whether a writer, any reader, or an upgradable lock is inside: hints, outdated as soon
    /// as they are returned.
    [[nodiscard]] bool is_locked() const noexcept
    {
        return this->state().is_held(lock_mode::exclusive);
    }
    [[nodiscard]] bool is_locked_shared() const noexcept
    {
        return this->state().is_held(lock_mode::shared);
    }
    [[nodiscard]] bool is_locked_upgrade() const noexcept
    {
        return this->state().is_held(lock_mode::upgradable);
    }
    /// As constructed.
    [[nodiscard]] lock_preference preference() const noexcept { return this->state().preference(); }

private:
    template <class Lock, lock_mode wants>
    using request = detail::shared_mutex_request<basic_shared_mutex, Lock, wants>;
    template <class Held, lock_mode has>
    using upgrade = detail::upgrade_request<basic_shared_mutex, Held, has>;
    template <class Owner, class Lock, lock_mode wants>
    friend struct detail::shared_mutex_request;
    template <class, class>
    friend class detail::lock_handle;

    static constexpr auto by_hand = state_type::way::by_hand;

    auto exclusive_request() noexcept
    {
        return request<lock_type, lock_mode::exclusive>{this, this->state_pointer()};
    }
    bool take(lock_mode wants) noexcept
    {
        return this->state().try_take(lock_mode::nothing, wants, by_hand);
    }
    bool give(lock_mode has) noexcept
    {
        return this->state().give(has, lock_mode::nothing, by_hand);
    }
    void give(lock_mode has, error_code& ec) noexcept
    {
        ec = give(has) ? error_code() : make_error_code(errc::not_locked);
    }
    void give(lock_mode has, const char* where)
    {
        if (!give(has)) [[unlikely]]
            detail::throw_error(errc::not_locked, where);
    }

    template <class Lock>
    shared_lock_type lower(Lock& lock, lock_mode has, error_code& ec) noexcept
    {
        state_type& state = this->state();
        if (detail::lock_access::state_of(lock) != &state || !state.give(has, lock_mode::shared)) {
            ec = errc::not_locked;
            return {};
        }
        ec = {};
        detail::lock_access::let_go(lock);
        return detail::lock_access::make<shared_lock_type>(this, state);
    }
};

namespace detail {

template <class Threading, lock_mode what>
struct shared_hold {
    using state_type = shared_mutex_state<Threading>;
    static bool try_take(state_type& state) noexcept
    {
        return state.try_take(lock_mode::nothing, what);
    }
    TURNSTILE_HOT static bool give(state_type& state, const void* handle) noexcept
    {
        return state.give(what, lock_mode::nothing, state_type::way::as_handle, handle);
    }
    static bool adopt(state_type& state) noexcept { return state.adopt(what); }
    static void detach(state_type& state, const void* handle) noexcept
    {
        state.detach(what, handle);
    }
};

template <class Executor, class Threading>
struct lock_holds<basic_shared_mutex<Executor, Threading>> {
    using exclusive = shared_hold<Threading, lock_mode::exclusive>;
    using shared = shared_hold<Threading, lock_mode::shared>;
    using upgradable = shared_hold<Threading, lock_mode::upgradable>;
};

} // namespace detail

/// The usual read-write lock: any thread, any executor.
using shared_mutex = basic_shared_mutex<>;

namespace local {

/// A read-write lock for one strand: no atomics, no locks.
using shared_mutex = basic_shared_mutex<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
