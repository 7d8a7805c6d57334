// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/operation.hpp>
#include <turnstile/work/multiple_errors.hpp>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace turnstile::inline v0_1 {
namespace {

std::string message_of(const std::exception_ptr& error)
{
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "unknown exception";
    }
}

std::string message_of(const std::vector<std::exception_ptr>& errors)
{
    std::string text = fmt::format("{} operations failed", errors.size());
    for (const auto& error : errors)
        text += fmt::format("; {}", message_of(error));
    return text;
}

} // namespace

multiple_errors::multiple_errors(std::vector<std::exception_ptr> errors)
    : system_error(failure(errors.front()).code(), message_of(errors)), errors_(std::move(errors))
{
}

namespace detail {

std::exception_ptr combined_error(std::vector<std::exception_ptr> errors)
{
    if (errors.empty())
        return nullptr;
    if (errors.size() == 1)
        return errors.front();
    return std::make_exception_ptr(multiple_errors(std::move(errors)));
}

} // namespace detail
} // namespace turnstile::inline v0_1
