// SPDX-License-Identifier: BSL-1.0
// The results of an operation, by its completion signature: result_traits<Signature> stores the
// arguments of the completion handler as a tuple, reads the failure from it, and makes the tuple of
// a failure that the operation itself did not report. Every component that runs an operation uses
// it.
//
// A signature reports failures if its first argument is an error_code, a std::error_code or an
// exception_ptr.
#pragma once

#include <turnstile/core/operation.hpp>

#include <boost/system/system_error.hpp>

#include <exception>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// Reads and writes a failure as the first argument of a signature. A type without a specialisation
// reports no failure.
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

    // Whether the signature reports failures.
    static constexpr bool reports_failure = argument::reports;
    // Whether it reports them as exceptions, which can carry more than an error code.
    static constexpr bool reports_exception =
        std::is_same_v<std::decay_t<First>, std::exception_ptr>;
    // Whether from_failure() can make a result: the other arguments are default constructible.
    static constexpr bool can_make_failure =
        argument::reports && (std::is_default_constructible_v<std::decay_t<Rest>> && ...);

    static failure failure_of(const tuple& result) noexcept
    {
        if constexpr (reports_failure)
            return argument::read(std::get<0>(result));
        else
            return {};
    }

    // Makes the result that reports `f`; the other arguments are default constructed.
    static tuple from_failure(const failure& f)
    {
        static_assert(reports_failure,
                      "The completion signature of the operation must start with an error_code "
                      "or an exception_ptr. Otherwise a failure cannot be reported.");
        static_assert(can_make_failure,
                      "The arguments after the error in the completion signature of the operation "
                      "must be default constructible. A failed call passes default values.");
        return tuple(argument::write(f), std::decay_t<Rest>()...);
    }
    static tuple from_error(const error_code& ec) { return from_failure(ec); }

    // Replaces the failure in `result`, and keeps the other arguments.
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
