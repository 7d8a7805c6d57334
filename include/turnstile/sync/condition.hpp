// An asynchronous condition variable: the lock is held again whatever a wait ends with.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/detail/io_object.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/sync/detail/condition_ask.hpp>
#include <turnstile/sync/mutex.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <mutex>
#include <utility>

namespace turnstile {

/// Lets the holder of a mutex wait until another holder has changed something.
///
/// A wait releases the lock, and has it again when it completes: on success, on cancellation
/// and when the condition is destroyed. Only if the mutex itself is destroyed, or an execution
/// context is, there is no lock to have. Nobody is missed between release and wait.
///
/// Fairness: notifications go to those who wait in the order they came, and wake no more than
/// they must: who is woken queues for the lock like everybody else.
/// Destruction: every waiter completes with `operation_aborted`, holding its lock.
template <class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_condition
    : public detail::io_object<Executor, Threading, detail::condition_state<Threading>> {
    using base = detail::io_object<Executor, Threading, detail::condition_state<Threading>>;

    template <class E>
    using mutex_of = basic_mutex<E, Threading>;

public:
    using typename base::executor_type;

    template <class Other>
    struct rebind_executor {
        using other = basic_condition<Other, Threading>;
    };

    /// A condition whose completions run on `executor` by default.
    explicit basic_condition(const Executor& executor) : base(executor) {}

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
    /// Errors: `errc::not_locked` if `lock` does not own one: then nothing happens.
    /// `operation_aborted` if cancelled, or the condition was destroyed; or if the mutex was,
    /// and then `lock` stays empty.
    /// Executor: the handler's associated executor, by default the condition's own.
    /// Cancellation: terminal, partial and total. It still waits for the lock.
    /// Cancel safety: cancelled before the handler runs, also while it waits for the lock, it
    /// uses up no notification: one it had goes to the next waiter.
    /// Fairness: FIFO. Thread safety: as the policy says.
    template <class E, token_for<void> Token = default_token_t<Executor>>
        requires(!std::predicate<std::decay_t<Token>&>)
    auto async_wait(std::unique_lock<mutex_of<E>>& lock, Token&& token = Token())
    {
        return detail::start_wait(ask<mutex_of<E>, detail::any_notification>(*this, lock, {}),
                                  std::forward<Token>(token));
    }

    /// Waits until `predicate()` is true: at once, or after a notification.
    ///
    /// The predicate is called with the lock held: once by the initiating function, then on
    /// the handler's executor (or if that cannot be posted to, the condition's).
    /// If it says no, the waiter goes back to its place, and the notification to the next
    /// behind it who has not seen it.
    ///
    /// Errors: `errc::predicate_failed` if the predicate throws; a coroutine that awaits with
    /// `use_awaitable` is thrown that exception instead. The lock is held, and the
    /// notification goes to the next.
    /// Everything else: as above.
    template <class E, std::predicate Predicate, token_for<void> Token = default_token_t<Executor>>
    auto async_wait(std::unique_lock<mutex_of<E>>& lock, Predicate predicate,
                    Token&& token = Token())
    {
        return detail::start_wait(ask<mutex_of<E>, Predicate>(*this, lock, std::move(predicate)),
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
    template <class Mutex, class Predicate>
    using ask = detail::condition_ask<basic_condition, Mutex, Predicate>;
    template <class, class, class>
    friend class detail::condition_ask;

    template <class E>
    static detail::permit_gate<Threading>& gate_of(mutex_of<E>& m) noexcept
    {
        return m.state();
    }
};

/// The usual condition: any thread, any executor.
using condition = basic_condition<>;

namespace local {

/// A condition for one strand: no atomics, no locks.
using condition = basic_condition<asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile
