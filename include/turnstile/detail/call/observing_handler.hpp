// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/call/wraps_handler.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A handler for an operation run on behalf of somebody else: when it completes, the observer
// is called with the failure, if any, or with all the results if it takes a tuple, and is gone
// before they go to the handler unchanged. Executor, allocator and cancellation slot are the
// handler's.
//
// An observer that owns something (a permit) gives it back also if the operation is dropped.
template <class Signature, class Handler, class Observer>
class observing_handler {
public:
    using wrapped_handler = Handler;

    observing_handler(Handler handler, Observer observer)
        : handler_(std::move(handler)), observer_(std::move(observer))
    {
    }

    template <class... Args>
    void operator()(Args&&... args)
    {
        typename result_traits<Signature>::tuple result(std::forward<Args>(args)...);
        {
            Observer observer(std::move(observer_));
            if constexpr (std::is_invocable_v<Observer&, decltype(std::as_const(result))>)
                observer(std::as_const(result));
            else
                observer(result_traits<Signature>::failure_of(result));
        }
        std::apply(std::move(handler_), std::move(result));
    }

    const Handler& get() const noexcept { return handler_; }

private:
    Handler handler_;
    Observer observer_;
};

template <class Signature, class Handler, class Observer>
auto observe(Handler handler, Observer observer)
{
    return observing_handler<Signature, Handler, Observer>(std::move(handler), std::move(observer));
}

} // namespace turnstile::inline v0_1::detail
