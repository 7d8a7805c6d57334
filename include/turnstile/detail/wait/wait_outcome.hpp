// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// What a value is kept in until its handler is called, since moving it on the way must not
// fail: nearly always in itself, else on the heap.
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

// Where making a value from nothing may fail, that is left to where the handler is called.
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

// The signature of an operation with the result T, which may be void.
template <class T>
struct signature_of {
    using type = void(error_code, T);
};
template <>
struct signature_of<void> {
    using type = void(error_code);
};

// An operation's error and value.
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
