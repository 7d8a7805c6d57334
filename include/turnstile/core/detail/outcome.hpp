#pragma once

#include <turnstile/core/config.hpp>

#include <type_traits>
#include <utility>

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

// An operation's error and value in one argument, which no coroutine takes for an exception.
template <class T>
struct outcome {
    error_code error;
    T value{};
};

template <>
struct outcome<void> {
    error_code error;
};

// How a handler takes its result: as the arguments of the signature, or as one outcome.
enum class passing { arguments, packed };

template <passing Passing, class Handler, class T>
void complete_with(Handler&& handler, outcome<T>&& result)
{
    if constexpr (Passing == passing::packed)
        std::forward<Handler>(handler)(std::move(result));
    else if constexpr (std::is_void_v<T>)
        std::forward<Handler>(handler)(result.error);
    else
        std::forward<Handler>(handler)(result.error, std::move(result.value));
}

} // namespace turnstile::detail
