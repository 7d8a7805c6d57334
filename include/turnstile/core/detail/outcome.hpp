#pragma once

#include <turnstile/core/config.hpp>

namespace turnstile::detail {

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
struct outcome {
    error_code error;
    T value{};
};

template <>
struct outcome<void> {
    error_code error;
};

} // namespace turnstile::detail
