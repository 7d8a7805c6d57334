// SPDX-License-Identifier: BSL-1.0
// to_string() for the public enumerations of all layers. The header is small because every header
// with an enumeration includes it; formatters for fmt are in core/format.hpp, so that only programs
// that use them compile fmt.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace turnstile::inline v0_1 {
namespace detail {

// The names of the enumerators of E, in order, beginning with the value 0. Every public enumeration
// specialises this variable right after its definition, and thereby has to_string() and a
// formatter.
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <class E>
concept named_enum = std::is_enum_v<E> && !enum_names<E>.empty();

} // namespace detail

/// Returns the name of an enumerator: `to_string(circuit_state::half_open)` is "half_open". For a
/// value that is not an enumerator it returns "unknown".
template <detail::named_enum E>
constexpr std::string_view to_string(E value) noexcept
{
    const auto index = static_cast<std::size_t>(value);
    return index < detail::enum_names<E>.size() ? detail::enum_names<E>[index] : "unknown";
}

} // namespace turnstile::inline v0_1
