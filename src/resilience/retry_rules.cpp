// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/resilience/detail/retry_rules.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <variant>

namespace turnstile::inline v0_1::detail {
namespace {

// Errors of the calling program: another attempt with the same arguments fails again.
bool is_programming_error(errc code) noexcept
{
    switch (code) {
    case errc::invalid_argument:
    case errc::too_large:
    case errc::not_locked:
    case errc::over_release:
    case errc::negative_count:
    case errc::over_count:
    case errc::context_mismatch:
        return true;
    default:
        return false;
    }
}

bool is_programming_error(const std::exception_ptr& exception) noexcept
{
    try {
        std::rethrow_exception(exception);
    } catch (const std::logic_error&) {
        return true;
    } catch (const std::bad_cast&) { // also bad_any_cast
        return true;
    } catch (const std::bad_function_call&) {
        return true;
    } catch (const std::bad_optional_access&) {
        return true;
    } catch (const std::bad_variant_access&) {
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace

bool is_transient(const failure& f) noexcept
{
    if (!f)
        return false;
    const error_code code = f.code();
    if (code.category() == error_category() &&
        is_programming_error(static_cast<errc>(code.value())))
        return false;
    return !f.exception() || !is_programming_error(f.exception());
}

std::optional<nanoseconds> delay_of_rejection(const failure& f) noexcept
{
    if (!f.exception())
        return std::nullopt;
    try {
        std::rethrow_exception(f.exception());
    } catch (const rejection& r) {
        if (r.retry_after() != nanoseconds::max())
            return r.retry_after();
    } catch (...) {
    }
    return std::nullopt;
}

} // namespace turnstile::inline v0_1::detail
