// SPDX-License-Identifier: BSL-1.0
// A value that a channel stores once and hands out to many.
#pragma once

#include <turnstile/channel/detail/value_node.hpp>
#include <turnstile/core/threading.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

template <class T, class Executor, class Threading>
class basic_broadcast;
template <class T, class Executor, class Threading>
class basic_watch;

/// A share in a value that nobody changes any more: what `broadcast` and `watch` deliver
/// instead of a copy for each receiver. The value lives as long as somebody has a share in
/// it, also when the channel is gone.
///
/// Cheap to copy and to move; a pointer inside. An empty one must not be dereferenced.
/// Thread safety: of a `thread_safe` channel, different shares in a value may be used on
/// different threads; of a `strand_confined` one they stay on its strand.
template <class T, class Threading = thread_safe>
class shared_value {
public:
    using value_type = T;

    /// Empty.
    shared_value() noexcept = default;

    /// A value of its own, made from `args`, to be sent later without fail.
    template <class... Args>
    [[nodiscard]] static shared_value make(Args&&... args)
    {
        return shared_value(detail::make_node<T, Threading>(std::forward<Args>(args)...));
    }

    /// Whether there is a value.
    explicit operator bool() const noexcept { return node_ != nullptr; }

    const T& operator*() const noexcept { return *get(); }
    const T* operator->() const noexcept { return get(); }

    /// The value, or null.
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

    // A share in what is made already, or a value of its own.
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

// What can be sent: a value that is made already, or what one can be made from.
template <class U, class T, class Threading>
concept shareable =
    std::constructible_from<T, U> || std::convertible_to<U, shared_value<T, Threading>>;

} // namespace detail
} // namespace turnstile::inline v0_1
