// SPDX-License-Identifier: BSL-1.0
// Formatters for fmt: the public enumerations of all layers, and errc. This is the only header
// that includes fmt, which is why it is separate and small.
#pragma once

#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>

#include <fmt/format.h>

#include <string_view>

/// Formats an enumerator as `to_string` does: `fmt::format("{}", circuit_state::half_open)` is
/// "half_open". The format specification is that of a string.
template <turnstile::detail::named_enum E>
struct fmt::formatter<E> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(E value, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(turnstile::to_string(value), context);
    }
};

/// Formats an error as `to_string` does: `fmt::format("{}", errc::closed)` is the message of the
/// error.
template <>
struct fmt::formatter<turnstile::errc> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(turnstile::errc code, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(turnstile::to_string(code), context);
    }
};
