// SPDX-License-Identifier: BSL-1.0
// State of a wait: granted, refused, aborted, pending, or not yet attempted. A fast path returns
// one, a waiter stores one, and a coroutine reads one when it resumes. A refused wait carries the
// errc it fails with; an aborted wait fails with operation_aborted.
#pragma once

#include <turnstile/core/error.hpp>

#include <boost/asio/error.hpp>

namespace turnstile::inline v0_1::detail {

class wait_decision {
public:
    static constexpr wait_decision granted() noexcept { return wait_decision(granted_value); }
    static constexpr wait_decision pending() noexcept { return wait_decision(pending_value); }
    static constexpr wait_decision aborted() noexcept { return wait_decision(aborted_value); }
    static constexpr wait_decision unattempted() noexcept
    {
        return wait_decision(unattempted_value);
    }
    static constexpr wait_decision refused(errc code) noexcept
    {
        return wait_decision(static_cast<int>(code));
    }

    constexpr bool is_granted() const noexcept { return value_ == granted_value; }
    constexpr bool is_pending() const noexcept { return value_ == pending_value; }
    constexpr bool is_unattempted() const noexcept { return value_ == unattempted_value; }
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
    // Positive values are the errc of a refused wait.
    static constexpr int granted_value = 0;
    static constexpr int pending_value = -1;
    static constexpr int aborted_value = -2;
    static constexpr int unattempted_value = -3;

    constexpr explicit wait_decision(int value) noexcept : value_(value) {}
    int value_;
};

} // namespace turnstile::inline v0_1::detail
