// SPDX-License-Identifier: BSL-1.0
// Permits of a semaphore, as a value that gives them back.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1 {

/// A number of permits taken from a `Semaphore`, given back when it goes out of scope.
/// Movable, not copyable. It may outlive its semaphore: then it gives nothing back. Not itself
/// thread safe.
template <class Semaphore>
class [[nodiscard]] permit {
    using state_type = detail::semaphore_state<typename Semaphore::threading_policy>;

public:
    /// Holds nothing.
    permit() noexcept = default;

    /// Takes charge of n permits that the caller acquired some other way.
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
    /// Gives back what it holds, then takes over what `other` holds.
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

    /// How many permits it holds.
    [[nodiscard]] std::uint64_t count() const noexcept { return n_; }
    /// Whether it holds any.
    explicit operator bool() const noexcept { return n_ != 0; }

    /// Gives all of them back now; does nothing if there are none.
    void release() noexcept
    {
        // Fails only if a release by hand has returned more than was out: then they are back.
        if (state_)
            std::exchange(state_, nullptr)->release(std::exchange(n_, 0), state_type::as_handle);
    }

    /// Splits off n of them. Errors: `errc::too_large` if it does not hold n,
    /// `errc::invalid_argument` if n is 0; then it keeps all, and the result is empty.
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

    /// The same, throwing `system_error`.
    permit split(std::uint64_t n)
    {
        error_code ec;
        permit part = split(n, ec);
        detail::throw_if(ec, "permit::split");
        return part;
    }

    /// Adds the permits of `other`, which is left empty. Errors: `errc::invalid_argument` if
    /// they are of another semaphore; then both stay as they were.
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

    /// The same, throwing `system_error`.
    void merge(permit&& other)
    {
        error_code ec;
        merge(std::move(other), ec);
        detail::throw_if(ec, "permit::merge");
    }

    /// Lets go without giving back: the caller is now in charge of that many permits.
    [[nodiscard]] std::uint64_t detach() noexcept
    {
        if (state_)
            std::exchange(state_, nullptr)->drop_handle();
        return std::exchange(n_, 0);
    }

private:
    friend Semaphore;

    // Of permits for which the gate has counted a handle.
    permit(state_type* state, std::uint64_t n) noexcept : state_(state), n_(n) {}

    state_type* state_ = nullptr; // if it holds any
    std::uint64_t n_ = 0;
};

} // namespace turnstile::inline v0_1
