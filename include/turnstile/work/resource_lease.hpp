// SPDX-License-Identifier: BSL-1.0
// The handle of a resource that was acquired from a resource_pool.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/config.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/work/detail/resource_pool_call.hpp>
#include <turnstile/work/detail/resource_pool_state.hpp>

#include <boost/assert.hpp>

#include <utility>

namespace turnstile::inline v0_1 {

/// The right to use a resource of a `resource_pool`, like a pointer to it. The destructor returns
/// the resource to the pool. Movable, not copyable.
///
/// @par Thread safety
/// The lease itself: none. Returning the resource counts as a call to the pool.
/// @par Destruction
/// A lease may outlive its pool and the execution context; the resource is then destroyed with the
/// lease, without the operation `close`.
template <class T, class Threading = thread_safe, clock_policy Clock = default_clock>
class [[nodiscard]] resource_lease {
    using state_type = detail::resource_pool_state<Threading, Clock>;
    using slot_type = detail::typed_pool_slot<T>;

public:
    /// The type of the resource.
    using element_type = T;

    /// An empty lease.
    resource_lease() noexcept = default;
    // Used by the pool.
    TURNSTILE_HOT resource_lease(state_type& state, detail::pool_slot& slot) noexcept
        : state_(&state), slot_(static_cast<slot_type*>(&slot))
    {
    }
    resource_lease(resource_lease&& other) noexcept
        : state_(other.state_), slot_(std::exchange(other.slot_, nullptr))
    {
    }
    /// Returns the resource of this lease, and takes over the other lease.
    resource_lease& operator=(resource_lease&& other) noexcept
    {
        resource_lease(std::move(other)).swap(*this);
        return *this;
    }
    TURNSTILE_HOT ~resource_lease()
    {
        if (slot_)
            state_->give_back(*slot_);
    }

    void swap(resource_lease& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(slot_, other.slot_);
    }
    friend void swap(resource_lease& a, resource_lease& b) noexcept { a.swap(b); }

    /// Whether the lease has a resource.
    explicit operator bool() const noexcept { return slot_ != nullptr; }
    /// The resource. Requires that the lease has one.
    [[nodiscard]] T& operator*() const noexcept
    {
        BOOST_ASSERT_MSG(slot_, "an empty resource_lease was dereferenced");
        return *slot_->value;
    }
    [[nodiscard]] T* operator->() const noexcept { return &**this; }
    /// The address of the resource; null if the lease is empty.
    [[nodiscard]] T* get() const noexcept { return slot_ ? &*slot_->value : nullptr; }

    /// Returns the resource to the pool, as the destructor does.
    void release() noexcept { resource_lease().swap(*this); }
    /// Ends the resource, because it is broken: the pool closes it instead of using it again. Does
    /// nothing if the lease is empty.
    void discard() noexcept
    {
        if (slot_)
            state_->discard(*std::exchange(slot_, nullptr));
    }
    /// Takes the resource out of the pool, which may create another one in its place. Requires that
    /// the lease has a resource. If moving the resource throws, the lease keeps it.
    [[nodiscard]] T detach()
    {
        BOOST_ASSERT_MSG(slot_, "an empty resource_lease was detached");
        T resource(std::move(*slot_->value));
        state_->detach(*std::exchange(slot_, nullptr));
        return resource;
    }

private:
    state_type* state_ = nullptr;
    slot_type* slot_ = nullptr;
};

} // namespace turnstile::inline v0_1
