// SPDX-License-Identifier: BSL-1.0
// A mutex for each key (a user, a file, an account), which exists only while it is used.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/work/detail/keyed_mutex_request.hpp>

#include <boost/assert.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

template <class Key, class Hash, class Equal, class Executor, class Threading>
class basic_keyed_mutex;

/// The lock of one key of a `keyed_mutex`, unlocked in its destructor. It is movable, but not
/// copyable, and may outlive the mutex.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: unsafe. The lock may be unlocked on another thread than
/// the one that acquired it.
template <class Key, class Threading = thread_safe>
class [[nodiscard]] keyed_lock {
    using state_type = detail::keyed_mutex_state<Threading>;
    using entry = detail::keyed_mutex_entry<Key>;

public:
    /// Owns no lock.
    keyed_lock() noexcept = default;
    keyed_lock(keyed_lock&& other) noexcept
        : state_(other.state_), entry_(std::exchange(other.entry_, nullptr))
    {
    }
    /// Unlocks the lock it owns, then takes over the lock of `other`.
    keyed_lock& operator=(keyed_lock&& other) noexcept
    {
        keyed_lock(std::move(other)).swap(*this);
        return *this;
    }
    ~keyed_lock() { give_back(); }

    void swap(keyed_lock& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(entry_, other.entry_);
    }
    friend void swap(keyed_lock& a, keyed_lock& b) noexcept { a.swap(b); }

    /// Unlocks.
    ///
    /// @par Errors
    /// `errc::not_locked` if it owns no lock.
    void unlock(error_code& ec) noexcept
    {
        ec = entry_ ? error_code() : make_error_code(errc::not_locked);
        give_back();
    }
    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock()
    {
        if (!entry_) [[unlikely]]
            detail::throw_error(errc::not_locked, "unlock");
        give_back();
    }

    /// The key. Requires that a lock is owned; the reference is valid until it is unlocked.
    [[nodiscard]] const Key& key() const noexcept
    {
        BOOST_ASSERT_MSG(entry_, "a keyed_lock without a lock has no key");
        return entry_->key;
    }
    /// Whether it owns a lock. Destroying the mutex does not change that.
    [[nodiscard]] bool owns_lock() const noexcept { return entry_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

private:
    template <class, class>
    friend struct detail::keyed_mutex_request;

    keyed_lock(state_type& state, entry* e) noexcept : state_(&state), entry_(e) {}

    void give_back() noexcept
    {
        detail::keyed_mutex_node* const n = std::exchange(entry_, nullptr);
        if (n)
            state_->unlock_and_unpin({&n, 1});
    }

    state_type* state_ = nullptr;
    entry* entry_ = nullptr;
};

/// The locks of several keys of a `keyed_mutex`, unlocked together in its destructor. In every
/// other respect as `keyed_lock`.
template <class Key, class Threading = thread_safe>
class [[nodiscard]] keyed_lock_set {
    using state_type = detail::keyed_mutex_state<Threading>;
    using nodes_type = std::vector<detail::keyed_mutex_node*>;

public:
    /// Owns no lock.
    keyed_lock_set() noexcept = default;
    keyed_lock_set(keyed_lock_set&& other) noexcept
        : state_(other.state_), nodes_(std::exchange(other.nodes_, {}))
    {
    }
    /// Unlocks the locks it owns, then takes over the locks of `other`.
    keyed_lock_set& operator=(keyed_lock_set&& other) noexcept
    {
        keyed_lock_set(std::move(other)).swap(*this);
        return *this;
    }
    ~keyed_lock_set() { give_back(); }

    void swap(keyed_lock_set& other) noexcept
    {
        std::swap(state_, other.state_);
        nodes_.swap(other.nodes_);
    }
    friend void swap(keyed_lock_set& a, keyed_lock_set& b) noexcept { a.swap(b); }

    /// Unlocks all keys.
    ///
    /// @par Errors
    /// `errc::not_locked` if it owns no locks.
    void unlock(error_code& ec) noexcept
    {
        ec = owns_lock() ? error_code() : make_error_code(errc::not_locked);
        give_back();
    }
    /// Equivalent to `unlock(ec)`; throws `system_error` where that sets `ec`.
    void unlock()
    {
        if (!owns_lock()) [[unlikely]]
            detail::throw_error(errc::not_locked, "unlock");
        give_back();
    }

    /// The number of keys, each counted once.
    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    /// The key at a position below `size()`, in the order in which the keys were locked.
    [[nodiscard]] const Key& key(std::size_t position) const noexcept
    {
        BOOST_ASSERT(position < size());
        return static_cast<const detail::keyed_mutex_entry<Key>*>(nodes_[position])->key;
    }
    /// Whether it owns locks. Destroying the mutex does not change that.
    [[nodiscard]] bool owns_lock() const noexcept { return !nodes_.empty(); }
    explicit operator bool() const noexcept { return owns_lock(); }

private:
    template <class, class>
    friend struct detail::keyed_mutex_set_request;

    keyed_lock_set(state_type& state, nodes_type nodes) noexcept
        : state_(&state), nodes_(std::move(nodes))
    {
    }

    void give_back() noexcept
    {
        const nodes_type nodes = std::exchange(nodes_, {});
        if (!nodes.empty())
            state_->unlock_and_unpin(nodes);
    }

    state_type* state_ = nullptr;
    nodes_type nodes_;
};

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
