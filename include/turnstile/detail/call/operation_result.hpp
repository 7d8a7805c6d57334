// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/operation.hpp>

#include <boost/system/system_error.hpp>

#include <exception>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// How the first argument of a signature reports failure.
template <class First>
struct failure_argument {
    static constexpr bool reports = false;
};

template <>
struct failure_argument<error_code> {
    static constexpr bool reports = true;
    static failure read(const error_code& ec) noexcept { return ec; }
    static error_code write(const failure& f) noexcept { return f.code(); }
};

template <>
struct failure_argument<std::error_code> {
    static constexpr bool reports = true;
    static failure read(const std::error_code& ec) noexcept { return error_code(ec); }
    static std::error_code write(const failure& f) noexcept { return f.code(); }
};

template <>
struct failure_argument<std::exception_ptr> {
    static constexpr bool reports = true;
    static failure read(const std::exception_ptr& e) noexcept { return e; }
    static std::exception_ptr write(const failure& f)
    {
        return f.exception() ? f.exception() : std::make_exception_ptr(system_error(f.code()));
    }
};

// The results of an operation with this signature, stored by value.
template <class Signature>
struct result_traits;

template <class R>
struct result_traits<R()> {
    using tuple = std::tuple<>;
    static constexpr bool reports_failure = false;
    static constexpr bool reports_exception = false;
    static constexpr bool can_make_failure = false;
    static failure failure_of(const tuple&) noexcept { return {}; }
};

template <class R, class First, class... Rest>
struct result_traits<R(First, Rest...)> {
    using tuple = std::tuple<std::decay_t<First>, std::decay_t<Rest>...>;
    using argument = failure_argument<std::decay_t<First>>;

    // Whether a failure can be told from success.
    static constexpr bool reports_failure = argument::reports;
    // Whether that is an exception, which can say more than an error code.
    static constexpr bool reports_exception =
        std::is_same_v<std::decay_t<First>, std::exception_ptr>;
    // Whether a result can be made for a failure the operation did not report itself.
    static constexpr bool can_make_failure =
        argument::reports && (std::is_default_constructible_v<std::decay_t<Rest>> && ...);

    static failure failure_of(const tuple& result) noexcept
    {
        if constexpr (reports_failure)
            return argument::read(std::get<0>(result));
        else
            return {};
    }

    // The result that reports f, in the form of the signature.
    static tuple from_failure(const failure& f)
    {
        static_assert(reports_failure,
                      "The operation's signature must start with an error_code or an "
                      "exception_ptr: otherwise there is no way to report a failure.");
        static_assert(can_make_failure,
                      "What follows the error in the operation's signature must be default "
                      "constructible: it is what a failed result carries.");
        return tuple(argument::write(f), std::decay_t<Rest>()...);
    }
    static tuple from_error(const error_code& ec) { return from_failure(ec); }

    // Replaces the failure, and leaves what came with it.
    static void replace_failure(tuple& result, const failure& f)
    {
        std::get<0>(result) = argument::write(f);
    }
};

template <class R, class... Args>
struct result_traits<R(Args...) noexcept> : result_traits<R(Args...)> {
};

template <operation Op>
using operation_result = result_traits<operation_signature_t<Op>>;

} // namespace turnstile::inline v0_1::detail
