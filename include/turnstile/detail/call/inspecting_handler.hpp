// SPDX-License-Identifier: BSL-1.0
// A completion handler that shows the result of an operation to an inspector before it passes the
// result on, unchanged, to the handler that it wraps. Circuit breaker and bulkhead inspect the
// results of their calls in this way.
//
// Invariant: the inspector is destroyed before the wrapped handler is called, and also if the
// operation is dropped. An inspector that owns a permit thereby releases it in every case. The
// handler is called even if the inspector throws; the exception has no caller to reach, and is
// dropped.
#pragma once

#include <turnstile/detail/call/handler_wrapper.hpp>
#include <turnstile/detail/call/operation_result.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The inspector takes either the tuple of the results, or a failure.
template <class Signature, class Handler, class Inspector>
class inspecting_handler {
public:
    using wrapped_handler = Handler;

    inspecting_handler(Handler handler, Inspector inspector)
        : handler_(std::move(handler)), inspector_(std::move(inspector))
    {
    }

    template <class... Args>
    void operator()(Args&&... args)
    {
        typename result_traits<Signature>::tuple result(std::forward<Args>(args)...);
        try {
            Inspector inspector(std::move(inspector_));
            if constexpr (std::is_invocable_v<Inspector&, decltype(std::as_const(result))>)
                inspector(std::as_const(result));
            else
                inspector(result_traits<Signature>::failure_of(result));
        } catch (...) {
        }
        std::apply(std::move(handler_), std::move(result));
    }

    const Handler& get() const noexcept { return handler_; }

private:
    Handler handler_;
    Inspector inspector_;
};

template <class Signature, class Handler, class Inspector>
auto inspect_result(Handler handler, Inspector inspector)
{
    return inspecting_handler<Signature, Handler, Inspector>(std::move(handler),
                                                             std::move(inspector));
}

} // namespace turnstile::inline v0_1::detail
