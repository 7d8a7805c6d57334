// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/error.hpp>

#include <boost/asio/error.hpp>

namespace turnstile::detail {

// How it stands with an operation: granted, refused or aborted, or it must wait; or nobody has
// looked yet.
class verdict {
public:
    static constexpr verdict granted() noexcept { return verdict(granted_value); }
    static constexpr verdict wait() noexcept { return verdict(wait_value); }
    static constexpr verdict aborted() noexcept { return verdict(aborted_value); }
    static constexpr verdict open() noexcept { return verdict(open_value); }
    static constexpr verdict refused(errc code) noexcept { return verdict(static_cast<int>(code)); }

    constexpr bool is_granted() const noexcept { return value_ == granted_value; }
    constexpr bool must_wait() const noexcept { return value_ == wait_value; }
    constexpr bool is_open() const noexcept { return value_ == open_value; }
    constexpr bool is_refused() const noexcept { return value_ > 0; }
    constexpr bool has_failed() const noexcept { return is_refused() || value_ == aborted_value; }
    constexpr errc code() const noexcept { return static_cast<errc>(value_); }
    error_code error() const noexcept
    {
        if (is_refused())
            return code();
        return value_ == aborted_value ? error_code(asio::error::operation_aborted) : error_code();
    }

private:
    // Above these, a verdict is the errc the operation fails with.
    static constexpr int granted_value = 0;
    static constexpr int wait_value = -1;
    static constexpr int aborted_value = -2;
    static constexpr int open_value = -3;

    constexpr explicit verdict(int value) noexcept : value_(value) {}
    int value_;
};

} // namespace turnstile::detail
