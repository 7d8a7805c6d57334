// SPDX-License-Identifier: BSL-1.0
// The outcome of a wait: its error code, and its value if it succeeded. An operation fills it when
// it ends, and passes it to its completion handler.
//
// Invariant: moving an outcome does not throw, so no granted value is lost on its way to the
// handler. A value whose move may throw is stored on the heap; nothrow_movable<T> chooses the
// stored type, and unwrap() makes the T for the handler.
#pragma once

#include <turnstile/core/config.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class T>
constexpr bool moves_safely =
    std::is_nothrow_move_constructible_v<T>&& std::is_nothrow_move_assignable_v<T>;

template <class T>
struct nothrow_movable {
    using type = T;
    static T&& unwrap(T&& value) noexcept { return std::move(value); }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<T> {
    using type = std::unique_ptr<T>;
    static T unwrap(type&& value) { return value ? T(std::move(*value)) : T(); }
};

// A T whose default constructor may throw is default constructed in unwrap() instead.
template <class T>
    requires(moves_safely<T>&& std::is_default_constructible_v<T> &&
             !std::is_nothrow_default_constructible_v<T>)
struct nothrow_movable<T> {
    using type = std::optional<T>;
    static T unwrap(type&& value) { return value ? T(std::move(*value)) : T(); }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<std::optional<T>> {
    using type = std::unique_ptr<T>;
    static std::optional<T> unwrap(type&& value)
    {
        return value ? std::optional<T>(std::move(*value)) : std::nullopt;
    }
};

template <class T>
    requires(!moves_safely<T>)
struct nothrow_movable<std::vector<T>> {
    using type = std::vector<std::unique_ptr<T>>;
    static std::vector<T> unwrap(type&& values)
    {
        std::vector<T> all;
        all.reserve(values.size());
        for (auto& value : values)
            all.push_back(std::move(*value));
        return all;
    }
};

// The completion signature of an operation with the result T, which may be void.
template <class T>
struct signature_of {
    using type = void(error_code, T);
};
template <>
struct signature_of<void> {
    using type = void(error_code);
};

template <class T>
struct wait_outcome {
    error_code error;
    typename nothrow_movable<T>::type value{};
};

template <>
struct wait_outcome<void> {
    error_code error;
};

} // namespace turnstile::inline v0_1::detail
