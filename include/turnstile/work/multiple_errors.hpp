// SPDX-License-Identifier: BSL-1.0
// The exception that reports the failures of several operations which ran at the same time.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <exception>
#include <vector>

namespace turnstile::inline v0_1 {

/// Several operations have failed. The error code is that of the first failure: the code of a
/// `system_error`, or `errc::operation_failed` for any other exception.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: safe for const functions.
class TURNSTILE_EXPORT multiple_errors : public system_error {
public:
    /// @param errors The failures, in the order in which they occurred; there is at least one.
    explicit multiple_errors(std::vector<std::exception_ptr> errors);

    /// The failures, in the order in which they occurred.
    const std::vector<std::exception_ptr>& errors() const noexcept { return errors_; }

private:
    std::vector<std::exception_ptr> errors_;
};

namespace detail {

// The exception that reports all failures: null if there is none, the failure itself if there is
// one, and multiple_errors otherwise.
TURNSTILE_EXPORT std::exception_ptr combined_error(std::vector<std::exception_ptr> errors);

} // namespace detail
} // namespace turnstile::inline v0_1
