// SPDX-License-Identifier: BSL-1.0
// A mutex for each key (a user, a file, an account), which exists only while it is used.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/work/detail/keyed_mutex_request.hpp>
#include <turnstile/work/keyed_lock.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A mutex for each key. The lock of a key exists only while it is held or waited for, or while an
/// operation looks for it.
///
/// @tparam Key Copyable. Keys are copied, hashed, compared and destroyed without an internal lock,
/// so that this code may use the mutex. It may also throw; then nothing is changed.
/// @tparam Hash, Equal May be called by several threads at the same time.
///
/// @par Fairness
/// Strictly FIFO for each key; operations for different keys do not wait for each other. The `try_`
/// functions fail while a key is locked or waited for.
/// @par Thread safety
/// Any thread may call any function of a `keyed_mutex`; a `local::keyed_mutex` is confined to one
/// strand.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Locks, and their keys, may outlive the mutex.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_keyed_mutex
    : public detail::io_object<Executor, Threading, detail::keyed_mutex_state<Threading>> {
    using state_type = detail::keyed_mutex_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

    template <class Range>
    static constexpr bool is_list_of_keys = std::ranges::input_range<Range>&&
        std::convertible_to<std::ranges::range_reference_t<Range>, const Key&>;

public:
    using typename base::executor_type;
    using key_type = Key;

    /// The result of `async_lock`. It unlocks in its destructor.
    using lock_type = keyed_lock<Key, Threading>;
    /// The result of `async_lock_all`. It unlocks in its destructor.
    using lock_set_type = keyed_lock_set<Key, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_keyed_mutex<Key, Hash, Equal, Other, Threading>;
    };

    /// Makes a mutex in which no key is locked. Handlers without an associated executor run on
    /// `executor`.
    explicit basic_keyed_mutex(const std::type_identity_t<Executor>& executor,
                               const Hash& hash = Hash(), const Equal& equal = Equal())
        : base(executor), hash_(hash), equal_(equal)
    {
    }

    /// Equivalent to `basic_keyed_mutex(context.get_executor(), hash, equal)`.
    template <detail::execution_context Context>
    explicit basic_keyed_mutex(Context& context, const Hash& hash = Hash(),
                               const Equal& equal = Equal())
        : basic_keyed_mutex(context.get_executor(), hash, equal)
    {
    }

    /// Waits for the lock of one key.
    ///
    /// The function itself throws `bad_alloc`, and the exceptions of copying and hashing the key.
    /// The exceptions of comparing keys are thrown when the operation is started; a coroutine is
    /// thrown them when it awaits.
    ///
    /// @par Completes when
    /// the key is unlocked, and the lock of every earlier request for it has been released.
    /// @par Completion signature
    /// `void(error_code, keyed_lock<Key, Threading>)`; on success the lock is owned.
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
    /// FIFO for each key.
    template <token_for<lock_type> Token = default_token_t<Executor>>
    auto async_lock(const Key& key, Token&& token = Token())
    {
        return detail::start_wait(request(*this, key), std::forward<Token>(token));
    }

    /// Waits for the locks of several keys, without the danger of a deadlock: operations that lock
    /// common keys lock them in the same order. A key that occurs more than once is locked once.
    ///
    /// This holds among calls of `async_lock_all`. A caller that holds a lock of this mutex
    /// already, and waits for another, may still wait for a caller that waits for the first one.
    ///
    /// @param keys A range of keys, which is copied.
    ///
    /// @par Completes when
    /// the operation holds the locks of all keys. It acquires one after the other, and keeps each
    /// while it waits for the next.
    /// @par Completion signature
    /// `void(error_code, keyed_lock_set<Key, Threading>)`; on success the locks are owned.
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the mutex was destroyed;
    /// `errc::invalid_argument` if there are no keys, which a coroutine is thrown as a
    /// `system_error` that says so.
    /// @par Executor
    /// The handler's associated executor, by default the mutex's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds no lock: the locks that it has
    /// acquired are handed over to the next waiters.
    /// @par Fairness
    /// FIFO for each key, from the time at which the operation waits for that key.
    template <class Keys, token_for<lock_set_type> Token = default_token_t<Executor>>
        requires is_list_of_keys<Keys>
    auto async_lock_all(Keys&& keys, Token&& token = Token())
    {
        return detail::start_wait(set_request(*this, keys), std::forward<Token>(token));
    }
    template <token_for<lock_set_type> Token = default_token_t<Executor>>
    auto async_lock_all(std::initializer_list<Key> keys, Token&& token = Token())
    {
        return detail::start_wait(set_request(*this, keys), std::forward<Token>(token));
    }

    /// Locks a key if it is unlocked; never waits. The result is empty otherwise.
    ///
    /// Throws `bad_alloc`, and the exceptions of copying, hashing and comparing keys.
    [[nodiscard]] lock_type try_lock(const Key& key)
    {
        request r(*this, key);
        return r.try_now().is_granted() ? r.take_now() : lock_type();
    }

    /// Locks all keys if all of them are unlocked; never waits. The result is empty otherwise, and
    /// no key is locked.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if there are no keys. Throws `bad_alloc`, and the exceptions of
    /// copying, hashing and comparing keys.
    template <class Keys>
        requires is_list_of_keys<Keys>
    [[nodiscard]] lock_set_type try_lock_all(Keys&& keys, error_code& ec)
    {
        set_request r(*this, keys);
        const detail::wait_decision decision = r.try_now();
        ec = decision.is_refused() ? decision.error() : error_code();
        return decision.is_granted() ? r.take_now() : lock_set_type();
    }
    [[nodiscard]] lock_set_type try_lock_all(std::initializer_list<Key> keys, error_code& ec)
    {
        return try_lock_all<std::initializer_list<Key>&>(keys, ec);
    }
    /// Equivalent to `try_lock_all(keys, ec)`; throws `system_error` where that sets `ec`.
    template <class Keys>
        requires is_list_of_keys<Keys>
    [[nodiscard]] lock_set_type try_lock_all(Keys&& keys)
    {
        error_code ec;
        lock_set_type locks = try_lock_all(keys, ec);
        detail::throw_if(ec, empty_list);
        return locks;
    }
    [[nodiscard]] lock_set_type try_lock_all(std::initializer_list<Key> keys)
    {
        return try_lock_all<std::initializer_list<Key>&>(keys);
    }

    /// The number of keys that are locked: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::size_t size() const noexcept { return this->state().size(); }

    using base::waiting;
    /// The number of operations that wait for a key: a hint, outdated as soon as it is returned. An
    /// `async_lock_all` is counted at the key for which it waits. Throws the exceptions of hashing
    /// and comparing keys.
    [[nodiscard]] std::size_t waiting(const Key& key) const
    {
        return query(
            key, [&](const detail::keyed_mutex_node& n) { return this->state().waiting_for(n); });
    }
    /// Whether a key is locked: a hint, outdated as soon as it is returned. Throws the exceptions
    /// of hashing and comparing keys.
    [[nodiscard]] bool is_locked(const Key& key) const
    {
        return query(key,
                     [&](const detail::keyed_mutex_node& n) { return this->state().is_locked(n); });
    }

private:
    using request = detail::keyed_mutex_request<basic_keyed_mutex, lock_type>;
    using set_request = detail::keyed_mutex_set_request<basic_keyed_mutex, lock_set_type>;
    template <class, class>
    friend struct detail::keyed_mutex_request_base;
    friend request;
    friend set_request;

    static constexpr const char* empty_list = "keyed_mutex: the list of keys must not be empty";

    std::size_t hash(const Key& key) const { return hash_(key); }
    const Equal& equal() const noexcept { return equal_; }

    // The result of f for the node of the key; zero or false if the key is not in use.
    template <class F>
    auto query(const Key& key, F f) const -> decltype(f(std::declval<detail::keyed_mutex_node&>()))
    {
        state_type& state = this->state();
        const detail::pinned_node<state_type> n(
            state, detail::find_key<Key>(state, key, hash(key), equal_, nullptr));
        return n.get() ? f(*n.get()) : decltype(f(*n.get()))();
    }

    [[no_unique_address]] Hash hash_;
    [[no_unique_address]] Equal equal_;
};

/// A mutex for each key, for any thread and any executor.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_mutex = basic_keyed_mutex<Key, Hash, Equal>;

namespace local {

/// A mutex for each key, confined to one strand: it needs no atomic operations and no internal
/// lock.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_mutex = basic_keyed_mutex<Key, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
