// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/resilience/rejection.hpp>

#include <exception>
#include <tuple>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The result of a call that is not let through, in the form of its signature: where failures are
// exceptions, one that says when to try again.
//
// `stage` goes before the message of the exception; null: nothing does.
template <class Signature>
auto rejected_result(const error_code& ec, nanoseconds retry_after, const char* stage = nullptr) ->
    typename result_traits<Signature>::tuple
{
    using traits = result_traits<Signature>;
    static_assert(traits::can_make_failure,
                  "A call that may be rejected needs a way to say so: the operation's signature "
                  "must start with an error_code or an exception_ptr, and what follows must be "
                  "default constructible.");
    if constexpr (!traits::can_make_failure) {
        std::terminate(); // says no more than what is above
    } else {
        if constexpr (traits::reports_exception) {
            const auto code = static_cast<errc>(ec.value());
            if (ec.category() == error_category())
                return traits::from_failure(std::make_exception_ptr(
                    stage ? rejection(code, retry_after, stage) : rejection(code, retry_after)));
        }
        return traits::from_error(ec);
    }
}

// Completes such a call: posted to the handler's executor, by default `executor`.
template <class Signature, class Executor, class Handler>
void reject_call(Handler&& handler, const Executor& executor, errc code, nanoseconds retry_after)
{
    post_handler(std::forward<Handler>(handler), executor,
                 rejected_result<Signature>(code, retry_after));
}

} // namespace turnstile::inline v0_1::detail
