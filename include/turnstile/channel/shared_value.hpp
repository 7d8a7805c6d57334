// SPDX-License-Identifier: BSL-1.0
// A value that a channel stores once and delivers to many receivers. `broadcast` and `watch` use
// it.
#pragma once

#include <turnstile/channel/detail/shared_value_node.hpp>
#include <turnstile/core/threading.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

template <class T, class Executor, class Threading>
class basic_broadcast;
template <class T, class Executor, class Threading>
class basic_watch;

/// A pointer to a constant value that is shared with other receivers. The value lives until its
/// last `shared_value` is destroyed, even if the channel is destroyed earlier.
///
/// Copying and moving it is cheap and does not copy the value. An empty `shared_value` must not be
/// dereferenced.
///
/// @par Thread safety
/// With `thread_safe`, different `shared_value` objects that share one value may be used on
/// different threads. With `strand_confined`, they must stay on the strand of the channel.
template <class T, class Threading = thread_safe>
class shared_value {
public:
    using value_type = T;

    /// Holds no value.
    shared_value() noexcept = default;

    /// Constructs the value `T(args...)`. Sending it later cannot throw.
    template <class... Args>
    [[nodiscard]] static shared_value make(Args&&... args)
    {
        return shared_value(detail::make_node<T, Threading>(std::forward<Args>(args)...));
    }

    /// Returns whether it holds a value.
    explicit operator bool() const noexcept { return node_ != nullptr; }

    const T& operator*() const noexcept { return *get(); }
    const T* operator->() const noexcept { return get(); }

    /// Returns a pointer to the value, or null.
    [[nodiscard]] const T* get() const noexcept
    {
        return node_ ? &static_cast<const detail::value_node<T, Threading>&>(*node_).value
                     : nullptr;
    }

protected:
    explicit shared_value(detail::node_ptr<Threading> node) noexcept : node_(std::move(node)) {}

private:
    template <class, class, class>
    friend class basic_broadcast;
    template <class, class, class>
    friend class basic_watch;

    // Shares the value of a shared_value; makes a new value from any other argument.
    template <class U>
    static shared_value of(U&& value)
    {
        if constexpr (std::convertible_to<U, shared_value>)
            return std::forward<U>(value);
        else
            return make(std::forward<U>(value));
    }

    detail::node_ptr<Threading> node_;
};

namespace detail {

// A type that can be sent: a shared_value, or an argument from which T can be constructed.
template <class U, class T, class Threading>
concept shareable =
    std::constructible_from<T, U> || std::convertible_to<U, shared_value<T, Threading>>;

} // namespace detail
} // namespace turnstile::inline v0_1
