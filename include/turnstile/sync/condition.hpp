// SPDX-License-Identifier: BSL-1.0
// An asynchronous condition variable. The lock is held again whenever a wait completes, also when
// it is cancelled.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/condition_state.hpp>
#include <turnstile/sync/mutex.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {
namespace detail {

template <class Mutex, class Threading>
constexpr bool is_mutex_with = false;
template <class E, class Threading>
constexpr bool is_mutex_with<basic_mutex<E, Threading>, Threading> = true;

// The lock type of a mutex with this policy.
template <class Lock, class Threading>
concept mutex_lock_with = is_mutex_with<typename Lock::mutex_type, Threading> &&
    std::same_as<Lock, typename Lock::mutex_type::lock_type>;

} // namespace detail

/// A condition on which the holder of a mutex waits until another holder has changed the
/// data that the mutex guards.
///
/// A wait unlocks the mutex, and holds the lock again when it completes: on success, on
/// cancellation, and when the condition is destroyed. Only if the mutex or the execution context is
/// destroyed is there no lock to hold. No notification is missed between unlocking and waiting.
/// The mutex must belong to the same execution context as the condition.
///
/// @par Fairness
/// A notification goes to the waiter that arrived first. A notified waiter queues for the lock as
/// any other operation: earlier requests of the mutex are granted first, and so is a request that
/// finds the mutex unlocked before the notified waiter runs on its executor.
/// @par Thread safety
/// Any thread may call any function of a `condition`; a `local::condition` is confined to one
/// strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`, and holds its lock.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_condition
    : public detail::io_object<Executor, Threading, detail::condition_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::condition_state<Threading>>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_condition<Other, Threading>;
    };

    /// Makes a condition. Handlers without an associated executor run on `executor`.
    explicit basic_condition(const std::type_identity_t<Executor>& executor) : base(executor) {}

    /// Equivalent to `basic_condition(context.get_executor())`.
    template <detail::execution_context Context>
    explicit basic_condition(Context& context) : basic_condition(context.get_executor())
    {
    }

    /// Unlocks, waits for a notification, and locks again.
    ///
    /// @param lock Must live until the operation completes. While the operation waits, `lock` is
    /// empty and must not be used. Waits with locks of different mutexes may share a condition.
    ///
    /// @par Completes when
    /// the waiter was notified and holds its lock again; never without a notification.
    /// @par Completion signature
    /// `void(error_code)`; `lock` owns the lock, on success and on error, unless an error below
    /// says otherwise.
    /// @par Errors
    /// `errc::not_locked` if `lock` owns no lock, and `errc::context_mismatch` if its mutex belongs
    /// to another execution context than the condition: nothing else happens then.
    /// `operation_aborted` if the wait was cancelled or the condition was destroyed; also if the
    /// mutex was destroyed, and then `lock` stays empty.
    /// @par Executor
    /// The handler's associated executor, by default the condition's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. A cancelled operation still waits for its lock.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs, also while it waits for the lock,
    /// consumes no notification. A notification it was given is handed over, in constant time, to
    /// the waiter that has been queued longest, unless no notification was given since that waiter
    /// was queued.
    /// @par Fairness
    /// Waiters are notified in the order of their arrival.
    template <detail::mutex_lock_with<Threading> Lock,
              token_for<void> Token = default_token_t<Executor>>
        requires(!std::predicate<std::decay_t<Token>&>)
    auto async_wait(Lock& lock, Token&& token = Token())
    {
        return detail::start_wait(request<Lock, detail::any_notification>(*this, lock, {}),
                                  std::forward<Token>(token));
    }

    /// Waits until `predicate()` is true. In every other respect as the overload without a
    /// predicate.
    ///
    /// If the predicate is false after a notification, the operation waits again and keeps its
    /// place in the order of arrival. The notification is handed over as that of a cancelled
    /// operation, so no predicate is tested twice for the same notifications.
    ///
    /// @param predicate Called with the lock held: once by the initiating function, and then after
    /// each notification on the handler's executor, or on the condition's if there is no memory to
    /// post to the handler's.
    ///
    /// @par Completes when
    /// the predicate is true, at once or after a notification.
    /// @par Errors
    /// As the overload without a predicate, and `errc::predicate_failed` if the predicate throws; a
    /// coroutine that awaits with `use_awaitable` gets that exception instead. The lock is held
    /// then, and the notification is handed over.
    template <detail::mutex_lock_with<Threading> Lock, std::predicate Predicate,
              token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Lock& lock, Predicate predicate, Token&& token = Token())
    {
        return detail::start_wait(request<Lock, Predicate>(*this, lock, std::move(predicate)),
                                  std::forward<Token>(token));
    }

    /// Notifies the first waiter. Without a waiter there is no effect: notifications are not
    /// stored. The caller need not hold the lock, but must have held it while it changed the data
    /// that the predicates test. No handler runs inside this call.
    void notify_one() noexcept { this->state().notify(1); }
    /// As `notify_one`, for the first n waiters.
    void notify(std::size_t n) noexcept { this->state().notify(n); }
    /// As `notify_one`, for all waiters.
    void notify_all() noexcept { this->state().notify_all(); }

    /// The number of operations that wait for a notification: a hint, outdated as soon as it is
    /// returned. A notified operation that waits for its lock is counted by the mutex.
    [[nodiscard]] std::size_t waiting() const noexcept { return base::waiting(); }

private:
    template <class Lock, class Predicate>
    using request =
        detail::condition_request<basic_condition, typename Lock::mutex_type, Predicate>;
    template <class, class, class>
    friend class detail::condition_request;
};

/// The condition for any thread and any executor.
using condition = basic_condition<>;

namespace local {

/// The condition for one strand: it needs no atomic operations and no internal lock.
using condition = basic_condition<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
