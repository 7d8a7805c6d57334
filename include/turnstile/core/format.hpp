// fmt formatters for the types of core/.
#pragma once

#include <turnstile/core/error.hpp>

#include <fmt/format.h>

#include <string>

/// `fmt::format("{}", errc::closed)` gives the message of the error.
template <>
struct fmt::formatter<turnstile::errc> : fmt::formatter<std::string> {
    template <class Context>
    auto format(turnstile::errc code, Context& context) const
    {
        return fmt::formatter<std::string>::format(turnstile::make_error_code(code).message(),
                                                   context);
    }
};
