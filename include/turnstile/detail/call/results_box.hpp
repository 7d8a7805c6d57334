// SPDX-License-Identifier: BSL-1.0
#pragma once

// The results of an operation on their way through a supervisor to the caller's handler. Moving
// them on the way must not fail, or the caller would never hear of the end of its call: results
// whose move may throw are kept on the heap, all others in the box itself.

#include <turnstile/detail/call/wraps_handler.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Tuple>
class heap_box {
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
constexpr bool needs_heap_box =
    !(std::is_nothrow_move_constructible_v<Tuple> && std::is_nothrow_move_assignable_v<Tuple>);

template <class Tuple>
using results_box =
    std::conditional_t<needs_heap_box<Tuple>, heap_box<Tuple>, std::optional<Tuple>>;

// Empties the box, and gives what was in it.
template <class Box>
Box take_from(Box& box) noexcept
{
    Box taken(std::move(box));
    box.reset();
    return taken;
}

// A handler that takes a box, and calls another with the results in it.
template <class Handler>
struct unboxing_handler {
    using wrapped_handler = Handler;

    Handler handler;

    const Handler& get() const noexcept { return handler; }

    template <class Tuple>
    void operator()(heap_box<Tuple> box)
    {
        std::apply(std::move(handler), std::move(*box));
    }
};

} // namespace turnstile::inline v0_1::detail
