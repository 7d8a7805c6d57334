// SPDX-License-Identifier: BSL-1.0
// The names of the values of the library's enumerations, as text.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace turnstile::inline v0_1 {
namespace detail {

// The names of the values of E, in order, from 0 on. Every public enumeration specialises this
// right after its definition; to_string and the fmt formatter follow from it.
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <class E>
concept named_enum = std::is_enum_v<E> && !enum_names<E>.empty();

} // namespace detail

/// The name of an enumerator: `to_string(circuit_state::half_open)` is "half_open". A value that
/// is no enumerator gives "unknown".
template <detail::named_enum E>
constexpr std::string_view to_string(E value) noexcept
{
    const auto index = static_cast<std::size_t>(value);
    return index < detail::enum_names<E>.size() ? detail::enum_names<E>[index] : "unknown";
}

} // namespace turnstile::inline v0_1
