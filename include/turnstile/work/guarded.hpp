// SPDX-License-Identifier: BSL-1.0
// A value that can only be reached through its lock.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/work/detail/guarded_state.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A pointer to the value of a `guarded` or a `shared_guarded`, through which the value is read and
/// written. It owns the lock, and unlocks in its destructor. It is movable, but not copyable.
///
/// It may outlive its object: the value then exists until the handle is unlocked.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: unsafe. The lock may be unlocked on another thread than
/// the one that acquired it.
template <class Guarded>
class [[nodiscard]] guarded_ptr
    : public detail::guarded_handle<typename detail::guarded_operations<Guarded>::exclusive> {
    using base = detail::guarded_handle<typename detail::guarded_operations<Guarded>::exclusive>;

public:
    using base::base;
};

/// A value of type `T` with a mutex: the only way to the value is through the lock.
///
/// @tparam T Need be neither copyable nor movable: it is constructed in place.
///
/// @par Fairness
/// Strictly FIFO. `try_lock` fails while an operation waits.
/// @par Thread safety
/// Any thread may call any function of a `guarded`; a `local::guarded` is confined to one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Handles may outlive the object; the value is
/// destroyed after the last handle was unlocked and the last operation has completed.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_guarded
    : public detail::io_object<Executor, Threading, detail::guarded_state<T, Threading>> {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>,
                  "turnstile::guarded<T> needs an object type that is neither const nor an array");
    using state_type = detail::guarded_state<T, Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    using value_type = T;

    /// The result of `async_lock`. It unlocks in its destructor.
    using lock_type = guarded_ptr<basic_guarded>;

    template <class Other>
    struct rebind_executor {
        using other = basic_guarded<T, Other, Threading>;
    };

    /// Constructs the value from `args`, unlocked. Handlers without an associated executor run on
    /// `executor`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_guarded(const std::type_identity_t<Executor>& executor, Args&&... args)
        : base(executor, std::forward<Args>(args)...)
    {
    }

    /// Equivalent to `basic_guarded(context.get_executor(), args...)`.
    template <detail::execution_context Context, class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_guarded(Context& context, Args&&... args)
        : basic_guarded(context.get_executor(), std::forward<Args>(args)...)
    {
    }

    /// Waits for the lock of the value.
    ///
    /// @par Completes when
    /// the value is unlocked, and the handle of every earlier request has been unlocked.
    /// @par Completion signature
    /// `void(error_code, guarded_ptr<basic_guarded>)`; on success the handle owns the lock.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the object was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the object's own.
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

    /// Locks the value if it is unlocked and no operation waits for it; never waits. The result is
    /// empty otherwise.
    [[nodiscard]] lock_type try_lock() noexcept
    {
        state_type& state = this->state();
        return state.try_acquire(1, state_type::one_handle) ? adopt(this, state, 1) : lock_type();
    }

    /// Whether the value is locked: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked() const noexcept { return this->state().available() == 0; }

private:
    using request = detail::semaphore_request<basic_guarded, lock_type, detail::single_permit>;
    friend request;

    static lock_type adopt(basic_guarded* owner, detail::semaphore_state<Threading>& state,
                           std::uint64_t) noexcept
    {
        return detail::lock_access::make<lock_type>(owner, state);
    }
};

namespace detail {

template <class T, class Executor, class Threading>
struct guarded_operations<basic_guarded<T, Executor, Threading>> {
    struct exclusive {
        using value_type = T;
        using state_type = guarded_state<T, Threading>;
        using base_type = semaphore_state<Threading>;
        TURNSTILE_HOT static void release(state_type& state) noexcept { state.unlock(); }
    };
};

} // namespace detail

/// A guarded value for any thread and any executor.
template <class T>
using guarded = basic_guarded<T>;

namespace local {

/// A guarded value for one strand: it needs no atomic operations and no internal lock.
template <class T>
using guarded = basic_guarded<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
