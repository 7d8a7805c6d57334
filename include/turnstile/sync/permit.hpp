// SPDX-License-Identifier: BSL-1.0
// The permits that an operation has acquired from a semaphore, as a value that releases them in its
// destructor.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1 {

/// A number of permits of a `Semaphore`, released in its destructor. It is movable, but not
/// copyable.
///
/// It may outlive its semaphore: releasing it has no further effect then.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: unsafe. The permits may be released on another thread
/// than the one that acquired them.
template <class Semaphore>
class [[nodiscard]] permit {
    using state_type = detail::semaphore_state<typename Semaphore::threading_policy>;

public:
    /// Holds no permits.
    permit() noexcept = default;

    /// Takes ownership of n permits that the caller has acquired already, for example of detached
    /// ones.
    permit(Semaphore& semaphore, std::uint64_t n) noexcept
        : state_(n != 0 ? &semaphore.state() : nullptr), n_(n)
    {
        if (state_)
            state_->add_handle();
    }

    permit(permit&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), n_(std::exchange(other.n_, 0))
    {
    }
    /// Releases the permits it holds, then takes over the permits of `other`.
    permit& operator=(permit&& other) noexcept
    {
        permit(std::move(other)).swap(*this);
        return *this;
    }
    ~permit() { release(); }

    void swap(permit& other) noexcept
    {
        std::swap(state_, other.state_);
        std::swap(n_, other.n_);
    }

    /// The number of permits it holds.
    [[nodiscard]] std::uint64_t count() const noexcept { return n_; }
    /// Whether it holds any permits.
    explicit operator bool() const noexcept { return n_ != 0; }

    /// Releases all permits it holds. No effect if it holds none.
    void release() noexcept
    {
        // This fails only if semaphore::release has added permits that were not acquired: then
        // the semaphore has its maximum already.
        if (state_)
            std::exchange(state_, nullptr)->release(std::exchange(n_, 0), state_type::one_handle);
    }

    /// Moves n of the permits it holds into the returned permit.
    ///
    /// @par Errors
    /// `errc::too_large` if it holds fewer than n permits; `errc::invalid_argument` if n is 0. It
    /// keeps all its permits then, and the result is empty.
    permit split(std::uint64_t n, error_code& ec) noexcept
    {
        ec = n == 0   ? make_error_code(errc::invalid_argument)
             : n > n_ ? make_error_code(errc::too_large)
                      : error_code();
        if (ec)
            return {};
        if (n == n_)
            return std::move(*this);
        state_->add_handle();
        n_ -= n;
        return permit(state_, n);
    }

    /// Equivalent to `split(n, ec)`; throws `system_error` where that sets `ec`.
    permit split(std::uint64_t n)
    {
        error_code ec;
        permit part = split(n, ec);
        detail::throw_if(ec, "permit::split");
        return part;
    }

    /// Takes over the permits of `other`, which is left empty.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `other` holds permits of another semaphore. Both are unchanged
    /// then.
    void merge(permit&& other, error_code& ec) noexcept
    {
        ec = {};
        if (&other == this || !other)
            return;
        if (!*this)
            return swap(other);
        if (state_ != other.state_) {
            ec = errc::invalid_argument;
            return;
        }
        n_ += other.detach();
    }

    /// Equivalent to `merge(std::move(other), ec)`; throws `system_error` where that sets `ec`.
    void merge(permit&& other)
    {
        error_code ec;
        merge(std::move(other), ec);
        detail::throw_if(ec, "permit::merge");
    }

    /// Gives up ownership without releasing, and returns the number of permits. The caller has to
    /// release them with `semaphore::release`.
    [[nodiscard]] std::uint64_t detach() noexcept
    {
        if (state_)
            std::exchange(state_, nullptr)->drop_handle();
        return std::exchange(n_, 0);
    }

private:
    friend Semaphore;

    // For permits whose handle the state has counted already.
    permit(state_type* state, std::uint64_t n) noexcept : state_(state), n_(n) {}

    state_type* state_ = nullptr; // set exactly while n_ is not 0
    std::uint64_t n_ = 0;
};

} // namespace turnstile::inline v0_1
