// SPDX-License-Identifier: BSL-1.0
// fmt formatters for the enumerations of the library, of all layers.
#pragma once

#include <turnstile/core/enum_names.hpp>
#include <turnstile/core/error.hpp>

#include <fmt/format.h>

#include <string_view>

/// `fmt::format("{}", circuit_state::half_open)` gives what `to_string` does: "half_open".
template <turnstile::detail::named_enum E>
struct fmt::formatter<E> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(E value, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(turnstile::to_string(value), context);
    }
};

/// `fmt::format("{}", errc::closed)` gives what `to_string` does: the message of the error.
template <>
struct fmt::formatter<turnstile::errc> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(turnstile::errc code, Context& context) const
    {
        return fmt::formatter<std::string_view>::format(turnstile::to_string(code), context);
    }
};
