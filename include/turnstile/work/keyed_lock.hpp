// SPDX-License-Identifier: BSL-1.0
// The locks of a keyed_mutex as values that unlock in their destructor: keyed_lock for one key, and
// keyed_lock_set for several. `async_lock` and `async_lock_all` of keyed_mutex return them.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/work/detail/keyed_mutex_request.hpp>

#include <boost/assert.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

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

} // namespace turnstile::inline v0_1
