// SPDX-License-Identifier: BSL-1.0
// Storage for the results of an operation, or for none, that moves without throwing. A supervisor
// keeps the results of its operations in it until it calls the handler of the caller. If moving the
// results could throw on the way, the call could not complete.
//
// Invariant: a move of nothrow_results does not throw. Results whose own move may throw are on the
// heap (heap_results), all others in a std::optional.
#pragma once

#include <turnstile/detail/call/handler_wrapper.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Tuple>
class heap_results {
public:
    template <class... Args>
    void emplace(Args&&... args)
    {
        results_ = std::make_unique<Tuple>(std::forward<Args>(args)...);
    }
    void reset() noexcept { results_.reset(); }
    explicit operator bool() const noexcept { return results_ != nullptr; }
    Tuple& operator*() const noexcept { return *results_; }

private:
    std::unique_ptr<Tuple> results_;
};

template <class Tuple>
constexpr bool needs_heap_results =
    !(std::is_nothrow_move_constructible_v<Tuple> && std::is_nothrow_move_assignable_v<Tuple>);

template <class Tuple>
using nothrow_results =
    std::conditional_t<needs_heap_results<Tuple>, heap_results<Tuple>, std::optional<Tuple>>;

// Returns the contents of `box`, and empties it.
template <class Box>
Box take_from(Box& box) noexcept
{
    Box taken(std::move(box));
    box.reset();
    return taken;
}

// Wraps the handler of the caller where the results are posted to it on the heap.
template <class Handler>
struct heap_results_handler {
    using wrapped_handler = Handler;

    Handler handler;

    const Handler& get() const noexcept { return handler; }

    template <class Tuple>
    void operator()(heap_results<Tuple> box)
    {
        std::apply(std::move(handler), std::move(*box));
    }
};

} // namespace turnstile::inline v0_1::detail
