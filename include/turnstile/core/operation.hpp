// SPDX-License-Identifier: BSL-1.0
// Operations as arguments: one concept for everything that Asio can initiate. Components that run
// an operation for the caller (timeout, retry, circuit breaker, pipeline) take it in this form.
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

/// An asynchronous operation that has not been started. It is one of these:
/// - A callable object that takes a completion token, and whose completion signature Asio can
///   deduce: the result of an initiating function with `asio::deferred`, or a lambda that passes
///   its token to an initiating function,
///   `[&](auto token) { return timer.async_wait(std::move(token)); }`.
/// - A function without parameters that returns an `asio::awaitable<T, E>`. It is started with
///   `co_spawn`, and its completion signature is `void(std::exception_ptr, T)`.
///
/// An operation is invoked once, as an rvalue. The completion handler that it receives can be
/// moved, but not copied.
template <class Op>
concept operation = detail::token_operation<std::remove_cvref_t<Op>> ||
    detail::coroutine_operation<std::remove_cvref_t<Op>>;

/// An operation that can be started several times, as retry and hedge do. A copy of the operation
/// is made and invoked for each start; the original is not changed.
template <class Op>
concept repeatable_operation = operation<Op> && std::copy_constructible<std::decay_t<Op>>;

/// The completion signature of an operation.
template <operation Op>
using operation_signature_t = typename detail::operation_signature<std::remove_cvref_t<Op>>::type;

/// A completion token for the completion signature of an operation.
template <class Token, class Op>
concept operation_token_for = asio::completion_token_for<Token, operation_signature_t<Op>>;

/// The failure of an operation: an error code, an exception, or none of them if it succeeded.
///
/// The completion signature of the operation determines how it reports a failure. With
/// `void(error_code, Ts...)` it has failed if the error code is set, with
/// `void(exception_ptr, Ts...)` if the exception is not null. With any other signature an operation
/// never fails.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: safe for const functions.
class failure {
public:
    /// No failure: the operation succeeded.
    failure() noexcept = default;
    /// The failure that `code` reports, or none if `code` is not set.
    failure(const error_code& code) noexcept : code_(code) {}
    /// The failure of an enumerator of error codes, such as `errc::rejected`.
    template <class Enum>
        requires boost::system::is_error_code_enum<Enum>::value failure(Enum code)
    noexcept : code_(code) {}
    /// The failure that `exception` reports, or none if it is null.
    failure(std::exception_ptr exception) noexcept : exception_(std::move(exception)) {}

    /// Returns whether the operation has failed.
    explicit operator bool() const noexcept { return code_ || exception_; }

    /// Returns the error code. For an exception it is the code of a `system_error`,
    /// `not_enough_memory` for a `bad_alloc`, and `errc::operation_failed` for any other exception.
    TURNSTILE_EXPORT error_code code() const noexcept;

    /// Returns the exception if the operation reported one, otherwise null.
    const std::exception_ptr& exception() const noexcept { return exception_; }

    /// Returns whether the operation was cancelled: the code is `operation_aborted`, also if an
    /// exception carries it.
    TURNSTILE_EXPORT bool is_cancelled() const noexcept;

private:
    error_code code_;
    std::exception_ptr exception_;
};

/// A stage of a `pipeline`, such as a circuit breaker, a bulkhead, a rate limiter or a class of the
/// user: `stage.async_call(operation, token)` is an initiating function that runs the operation.
/// The pipeline calls the stage as an lvalue, and the stage must outlive the pipeline and its
/// outstanding calls.
///
/// A stage keeps these rules:
/// - It takes the operation by value or by forwarding reference, and accepts every `operation`.
/// - Its completion signature is `operation_signature_t<Op>`, and it passes the results of the
///   operation on unchanged.
/// - It reports a failure of its own, such as `errc::circuit_open`, in the first argument of that
///   signature: as an error code, or as an exception pointer to a `system_error`.
/// - The operation receives the associated executor, allocator and cancellation slot of the
///   handler.
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
