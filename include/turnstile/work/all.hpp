// SPDX-License-Identifier: BSL-1.0
// async_all: runs operations at the same time, and completes with all their results.
#pragma once

#include <turnstile/work/select.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {
namespace detail {

template <class Branches, class Result>
class all_rule {
public:
    using result_type = Result;

    bool is_fair() const noexcept { return false; }
    bool has_winner() const noexcept { return false; }
    bool has_won(const Branches& branches) const noexcept
    {
        return branches.size() != 0 && succeeded_ == branches.size();
    }
    bool failed(std::size_t) const noexcept { return true; }
    bool succeeded(std::size_t) noexcept
    {
        ++succeeded_;
        return false;
    }

    result_type take(Branches& branches) { return branches.take_all(); }
    static result_type no_value()
    {
        static_assert(std::is_default_constructible_v<result_type>,
                      "The results of the operations of async_all must be default constructible. "
                      "A failed call passes default values.");
        return result_type();
    }

private:
    std::size_t succeeded_ = 0;
};

template <class Executor, class... Args>
auto all_of_tuple(const Executor& executor, Args&&... args)
{
    const auto start = [&]<class Token, class... Ops>(Token&& token, Ops&&... ops) {
        using branches = tuple_branches<std::remove_cvref_t<Ops>...>;
        using result = typename branches::value_types;
        using rule = all_rule<branches, result>;
        return asio::async_initiate<Token, void(std::exception_ptr, result)>(
            initiate_race<Executor, branches, rule>{executor, rule()}, token,
            std::forward<Ops>(ops)...);
    };
    return with_operations_and_token(start, std::forward<Args>(args)...);
}

template <class Executor, class Range, class Token>
auto all_of_range(const Executor& executor, Range&& range, Token&& token)
{
    using op = std::ranges::range_value_t<Range>;
    using branches = vector_branches<op>;
    using result = std::vector<typename branches::value_type>;
    using rule = all_rule<branches, result>;
    return asio::async_initiate<Token, void(std::exception_ptr, result)>(
        initiate_race<Executor, branches, rule>{executor, rule()}, token,
        std::forward<Range>(range));
}

} // namespace detail

/// Runs operations at the same time, and completes with all their results. At the first failure the
/// others are cancelled and awaited.
///
/// The operations, the token and the executor are as with `async_select`.
///
/// @par Completes when
/// every started operation has completed.
/// @par Completion signature
/// `void(std::exception_ptr, std::tuple<Values...>)`. The value of an operation without a result is
/// `std::monostate`, that of several results a `std::tuple`. All values must be default
/// constructible.
/// @par Errors
/// The first failure; or `multiple_errors` if further operations fail before they are cancelled, or
/// fail with another error than `operation_aborted` afterwards.
/// @par Executor
/// The handler's associated executor, else the executor argument.
/// @par Per-operation cancellation
/// Terminal, partial and total: every operation is cancelled, with the same type. Unless all
/// succeed after that, the call fails with `operation_aborted`.
/// @par Cancel safety
/// The results of operations that had succeeded are dropped: locks and permits are given back,
/// popped values are lost.
template <class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_all(Args&&... args)
{
    return detail::all_of_tuple(detail::no_executor(), std::forward<Args>(args)...);
}

/// Equivalent to `async_all(args...)`, for handlers without an associated executor.
template <detail::any_executor_type Executor, class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_all(const Executor& executor, Args&&... args)
{
    return detail::all_of_tuple(executor, std::forward<Args>(args)...);
}

/// Equivalent to `async_all(args...)`, for a range of operations of one type. An rvalue range is
/// moved from; the operations of an lvalue range are copied.
///
/// @par Completion signature
/// `void(std::exception_ptr, std::vector<Value>)`, in the order of the range.
/// @par Errors
/// As above; and `errc::invalid_argument` if the range is empty.
template <detail::operation_range Range, class Token = asio::use_awaitable_t<>>
auto async_all(Range&& range, Token&& token = Token())
{
    return detail::all_of_range(detail::no_executor(), std::forward<Range>(range),
                                std::forward<Token>(token));
}
template <detail::any_executor_type Executor, detail::operation_range Range,
          class Token = detail::call_token_t<Executor>>
auto async_all(const Executor& executor, Range&& range, Token&& token = Token())
{
    return detail::all_of_range(executor, std::forward<Range>(range), std::forward<Token>(token));
}

} // namespace turnstile::inline v0_1
