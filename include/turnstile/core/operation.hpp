// SPDX-License-Identifier: BSL-1.0
// Operations: anything Asio can initiate, as one concept. What runs operations for others
// (timeout, retry, breaker, groups...) takes them in this form.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/call/operation_traits.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// An asynchronous operation that has not been started. Either
/// - a callable that takes a completion token, and whose completion signature Asio can tell:
///   what `asio::deferred` yields, or a lambda that passes it on,
///   `[&](auto token) { return timer.async_wait(std::move(token)); }`; or
/// - a function without parameters that returns an `asio::awaitable<T, E>`: it is started with
///   `co_spawn`, and has the signature `void(std::exception_ptr, T)`.
///
/// An operation is invoked as an rvalue, once. The handler it gets can be moved, not copied.
template <class Op>
concept operation = detail::token_operation<std::remove_cvref_t<Op>> ||
    detail::coroutine_operation<std::remove_cvref_t<Op>>;

/// An operation that can be started several times, as retry and hedge do: each time a copy
/// is made and invoked, and the original stays as it is.
template <class Op>
concept repeatable_operation = operation<Op> && std::copy_constructible<std::decay_t<Op>>;

/// The completion signature of an operation.
template <operation Op>
using operation_signature_t = typename detail::operation_signature<std::remove_cvref_t<Op>>::type;

/// A completion token that an operation can be started with.
template <class Token, class Op>
concept operation_token_for = asio::completion_token_for<Token, operation_signature_t<Op>>;

/// What went wrong with an operation: an error code, an exception, or nothing.
///
/// Signatures are read like this: `void(error_code, Ts...)` has failed if the error is set,
/// `void(exception_ptr, Ts...)` if there is an exception; any other never fails.
class failure {
public:
    failure() noexcept = default;
    failure(const error_code& code) noexcept : code_(code) {}
    failure(std::exception_ptr exception) noexcept : exception_(std::move(exception)) {}

    /// Whether it has failed.
    explicit operator bool() const noexcept { return code_ || exception_; }

    /// The error: of an exception, what a `system_error` carries, `not_enough_memory` for
    /// `bad_alloc`, and `errc::operation_failed` for any other.
    TURNSTILE_EXPORT error_code code() const noexcept;

    /// The exception, if that is how it failed; else null.
    const std::exception_ptr& exception() const noexcept { return exception_; }

    /// Whether it was cancelled: `operation_aborted`, in either form.
    TURNSTILE_EXPORT bool is_cancelled() const noexcept;

private:
    error_code code_;
    std::exception_ptr exception_;
};

/// A stage wraps operations: `stage.async_call(operation, token)` is an initiating function
/// that runs the operation under its protection.
///
/// It is called as an lvalue, and must outlive the pipeline that refers to it.
///
/// This is the one form that a circuit breaker, a bulkhead, a rate limiter or a user's own
/// class needs to have to be part of a `pipeline`:
/// - the operation is taken by value or forwarding reference, and may be any `operation`;
/// - the signature is `operation_signature_t<Op>`, and results pass through unchanged;
/// - a failure of the stage's own (`errc::circuit_open`, ...) takes the place of the
///   operation's;
/// - the handler's executor, allocator and cancellation slot are the operation's, too.
///
/// `resilience/stage.hpp` has functions for such classes.
template <class Stage, class Op>
concept stage_for = operation<Op> && requires(Stage& stage, Op op)
{
    {
        stage.async_call(std::move(op), detail::signature_probe())
        } -> std::same_as<detail::signature_probe_result<operation_signature_t<Op>>>;
};

} // namespace turnstile::inline v0_1
