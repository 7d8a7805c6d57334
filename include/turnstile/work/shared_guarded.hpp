// SPDX-License-Identifier: BSL-1.0
// A value that can only be reached through its lock, by many readers or by one writer.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/sync/lock_preference.hpp>
#include <turnstile/work/detail/guarded_state.hpp>
#include <turnstile/work/guarded.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A pointer to the value of a `shared_guarded`, through which the value is read. In every other
/// respect as `guarded_ptr`.
template <class Guarded>
class [[nodiscard]] guarded_read_ptr
    : public detail::guarded_handle<typename detail::guarded_operations<Guarded>::shared> {
    using base = detail::guarded_handle<typename detail::guarded_operations<Guarded>::shared>;

public:
    using base::base;
};

/// A value of type `T` with a `shared_mutex`: any number of operations read it at a time, or one
/// writes it.
///
/// @tparam T Need be neither copyable nor movable: it is constructed in place. Several threads may
/// use its const functions at the same time.
///
/// @par Fairness
/// See `lock_preference`; fair by default. The `try_` functions fail while an operation waits,
/// except that under `prefer_readers` `try_read` ignores waiting writers.
/// @par Thread safety
/// Any thread may call any function of a `shared_guarded`; a `local::shared_guarded` is confined to
/// one strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Handles may outlive the object; the value is
/// destroyed after the last handle was unlocked and the last operation has completed.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_shared_guarded
    : public detail::io_object<Executor, Threading, detail::shared_guarded_state<T, Threading>> {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>,
                  "turnstile::shared_guarded<T> needs an object type that is neither const nor an "
                  "array");
    using state_type = detail::shared_guarded_state<T, Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;
    using lock_mode = detail::lock_mode;

public:
    using typename base::executor_type;
    using value_type = T;

    /// The result of `async_lock`.
    using lock_type = guarded_ptr<basic_shared_guarded>;
    /// The result of `async_read`.
    using read_lock_type = guarded_read_ptr<basic_shared_guarded>;

    template <class Other>
    struct rebind_executor {
        using other = basic_shared_guarded<T, Other, Threading>;
    };

    /// Constructs the value from `args`, unlocked, with the preference `fair`. Handlers without an
    /// associated executor run on `executor`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_shared_guarded(const std::type_identity_t<Executor>& executor, Args&&... args)
        : base(executor, lock_preference::fair, std::forward<Args>(args)...)
    {
    }

    /// As the other constructor, with a preference.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_shared_guarded(const std::type_identity_t<Executor>& executor,
                                  lock_preference preference, Args&&... args)
        : base(executor, preference, std::forward<Args>(args)...)
    {
    }

    /// Equivalent to `basic_shared_guarded(context.get_executor(), args...)`, with or without a
    /// preference before the arguments of the value.
    template <detail::execution_context Context, class... Args>
        requires std::constructible_from<basic_shared_guarded, const Executor&, Args...>
    explicit basic_shared_guarded(Context& context, Args&&... args)
        : basic_shared_guarded(Executor(context.get_executor()), std::forward<Args>(args)...)
    {
    }

    /// Waits for exclusive access, to write.
    ///
    /// @par Completes when
    /// no handle is held and the preference gives precedence to no other waiter.
    /// @par Completion signature
    /// `void(error_code, guarded_ptr<basic_shared_guarded>)`; on success the handle owns the lock.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the object was destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the object's own.
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
        return detail::start_wait(
            request<lock_type, lock_mode::exclusive>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Waits for shared access, to read. In every other respect as `async_lock`.
    ///
    /// @par Completes when
    /// no writer holds the lock and the preference gives precedence to no waiting writer.
    /// @par Completion signature
    /// `void(error_code, guarded_read_ptr<basic_shared_guarded>)`; on success the handle owns a
    /// lock, and refers to a const `T`.
    template <token_for<read_lock_type> Token = default_token_t<Executor>>
    auto async_read(Token&& token = Token())
    {
        return detail::start_wait(
            request<read_lock_type, lock_mode::shared>{this, this->state_pointer()},
            std::forward<Token>(token));
    }

    /// Locks the value to write if that needs no waiting. The result is empty otherwise.
    [[nodiscard]] lock_type try_lock() noexcept
    {
        return attempt<lock_type, lock_mode::exclusive>();
    }
    /// Locks the value to read if that needs no waiting. The result is empty otherwise.
    [[nodiscard]] read_lock_type try_read() noexcept
    {
        return attempt<read_lock_type, lock_mode::shared>();
    }

    /// Whether a writer holds the value: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked() const noexcept
    {
        return this->state().is_held(lock_mode::exclusive);
    }
    /// Whether any reader holds the value: a hint, outdated as soon as it is returned.
    [[nodiscard]] bool is_locked_shared() const noexcept
    {
        return this->state().is_held(lock_mode::shared);
    }
    /// The preference given at construction.
    [[nodiscard]] lock_preference preference() const noexcept { return this->state().preference(); }

private:
    template <class Lock, lock_mode wanted>
    using request = detail::shared_mutex_request<basic_shared_guarded, Lock, wanted>;
    template <class Owner, class Lock, lock_mode wanted>
    friend struct detail::shared_mutex_request;

    template <class Lock, lock_mode wanted>
    Lock attempt() noexcept
    {
        const request<Lock, wanted> r{this, this->state_pointer()};
        return r.try_now().is_granted() ? r.take_now() : Lock();
    }
};

namespace detail {

template <class T, class Executor, class Threading>
struct guarded_operations<basic_shared_guarded<T, Executor, Threading>> {
    template <class Value, lock_mode mode>
    struct access {
        using value_type = Value;
        using state_type = shared_guarded_state<T, Threading>;
        using base_type = shared_mutex_state<Threading>;
        TURNSTILE_HOT static void release(state_type& state) noexcept { state.release(mode); }
    };
    using exclusive = access<T, lock_mode::exclusive>;
    using shared = access<const T, lock_mode::shared>;
};

} // namespace detail

/// A guarded value with readers and writers, for any thread and any executor.
template <class T>
using shared_guarded = basic_shared_guarded<T>;

namespace local {

/// A guarded value with readers and writers, for one strand: it needs no atomic operations and no
/// internal lock.
template <class T>
using shared_guarded = basic_shared_guarded<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
