#pragma once

#include <turnstile/core/detail/operation_result.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// Completes a call that is not let through, in the form of its signature: posted to the
// handler's executor, by default `executor`.
template <class Signature, class Executor, class Handler>
void reject_call(Handler&& handler, const Executor& executor, errc code, nanoseconds retry_after)
{
    using traits = result_traits<Signature>;
    const auto result = [&] {
        if constexpr (std::is_same_v<std::tuple_element_t<0, typename traits::tuple>,
                                     std::exception_ptr>)
            return traits::from_failure(std::make_exception_ptr(rejection(code, retry_after)));
        else
            return traits::from_error(code);
    };
    const auto where = asio::get_associated_executor(handler, executor);
    const auto allocator = asio::get_associated_allocator(handler);
    asio::post(where, asio::bind_allocator(
                          allocator, [h = std::forward<Handler>(handler), r = result()]() mutable {
                              std::apply(std::move(h), std::move(r));
                          }));
}

} // namespace turnstile::detail
