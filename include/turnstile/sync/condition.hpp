// SPDX-License-Identifier: BSL-1.0
// An asynchronous condition variable: the lock is held again whatever a wait ends with.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/detail/condition_request.hpp>
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

// What `async_lock` of a mutex with this policy gives.
template <class Lock, class Threading>
concept mutex_lock_with = is_mutex_with<typename Lock::mutex_type, Threading> &&
    std::same_as<Lock, typename Lock::mutex_type::lock_type>;

} // namespace detail

/// Lets the holder of a mutex wait until another holder has changed something.
///
/// A wait releases the lock, and has it again when it completes: on success, on cancellation
/// and when the condition is destroyed. Only if the mutex itself is destroyed, or the execution
/// context is, there is no lock to have. No notification is missed between release and wait.
/// The mutex must be of the same execution context as the condition.
///
/// Fairness: a notification goes to the waiter that came first. A waiter that has been notified
/// queues for the lock like everybody else: those who asked the mutex before it did have the lock
/// first, and so may somebody who finds the mutex free before the waiter's turn on its executor.
/// Destruction: every waiter completes with `operation_aborted`, holding its lock.
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

    /// A condition whose completions run on `executor` by default.
    explicit basic_condition(const std::type_identity_t<Executor>& executor) : base(executor) {}

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_condition(Context& context) : basic_condition(context.get_executor())
    {
    }

    /// Releases the lock, waits for a notification, and takes the lock again.
    ///
    /// `lock` must live until this completes. In the meantime it is empty, and not to be
    /// touched; waits with locks on different mutexes may share a condition.
    ///
    /// Completes when: notified, and the lock is there; never without a notification.
    /// Signature: `void(error_code)`; `lock` owns the lock, success or not.
    /// Errors: `errc::not_locked` if `lock` does not own one, and `errc::context_mismatch` if its
    /// mutex is of another execution context than the condition: then nothing happens.
    /// `operation_aborted` if cancelled, or the condition was destroyed; or if the mutex was,
    /// and then `lock` stays empty.
    /// Executor: the handler's associated executor, by default the condition's own.
    /// Cancellation: terminal, partial and total. It still waits for the lock.
    /// Cancel safety: cancelled before the handler runs, also while it waits for the lock, it
    /// uses up no notification: one it had goes, in constant time, to the waiter that has waited
    /// longest since it was last asked, if any was given since then.
    /// Fairness: notified in the order of arrival; others may have the lock in between, see above.
    /// Thread safety: as the policy says.
    template <detail::mutex_lock_with<Threading> Lock,
              token_for<void> Token = default_token_t<Executor>>
        requires(!std::predicate<std::decay_t<Token>&>)
    auto async_wait(Lock& lock, Token&& token = Token())
    {
        return detail::start_wait(request<Lock, detail::any_notification>(*this, lock, {}),
                                  std::forward<Token>(token));
    }

    /// Waits until `predicate()` is true: at once, or after a notification.
    ///
    /// The predicate is called with the lock held: once by the initiating function, then on
    /// the handler's executor (or if that cannot be posted to, the condition's).
    /// If it says no, the waiter waits on, and keeps its place in the order of arrival. The
    /// notification goes to the waiter that has waited longest since it was last asked, if one was
    /// given since then: the others have seen what there is to see. So no predicate is asked
    /// twice for the same notifications.
    ///
    /// Errors: `errc::predicate_failed` if the predicate throws; a coroutine that awaits with
    /// `use_awaitable` is thrown that exception instead. The lock is held, and the
    /// notification goes to the next.
    /// Everything else: as above.
    template <detail::mutex_lock_with<Threading> Lock, std::predicate Predicate,
              token_for<void> Token = default_token_t<Executor>>
    auto async_wait(Lock& lock, Predicate predicate, Token&& token = Token())
    {
        return detail::start_wait(request<Lock, Predicate>(*this, lock, std::move(predicate)),
                                  std::forward<Token>(token));
    }

    /// Wakes those who wait: the first, the first n, or all of them. What nobody waits for is
    /// not stored. The caller need not hold the lock, but must have held it to change what the
    /// predicates look at. No handler runs inside these calls. Thread safety: as the policy
    /// says.
    void notify_one() noexcept { this->state().notify(1); }
    void notify(std::size_t n) noexcept { this->state().notify(n); }
    void notify_all() noexcept { this->state().notify_all(); }

private:
    template <class Lock, class Predicate>
    using request =
        detail::condition_request<basic_condition, typename Lock::mutex_type, Predicate>;
    template <class, class, class>
    friend class detail::condition_request;
};

/// The usual condition: any thread, any executor.
using condition = basic_condition<>;

namespace local {

/// A condition for one strand: no atomics, no locks.
using condition = basic_condition<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
