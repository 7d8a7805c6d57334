// SPDX-License-Identifier: BSL-1.0
// async_select: runs operations at the same time until the first one succeeds.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/enum_names.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/work/detail/race.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/executor.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1 {

/// The order in which `async_select` starts its operations. Of several operations that are ready,
/// the one that was started first wins.
enum class select_order {
    written, ///< The order of the arguments.
    random,  ///< A random order, so that each operation that is ready wins equally often.
};

template <>
inline constexpr auto
    detail::enum_names<select_order> = std::to_array<std::string_view>({"written", "random"});

/// The result of `async_select` for a range: the position of the winner, and its value.
template <class T>
struct select_result {
    std::size_t index = 0; ///< The position of the operation that has succeeded.
    T value{};             ///< Its value; `std::monostate` if it has none.
};

namespace detail {

// The first alternative of a variant that can be default constructed: the value of a failed race.
template <class Variant, std::size_t I = 0>
constexpr std::size_t first_default()
{
    if constexpr (I == std::variant_size_v<Variant>)
        return I;
    else if constexpr (std::is_default_constructible_v<std::variant_alternative_t<I, Variant>>)
        return I;
    else
        return first_default<Variant, I + 1>();
}

template <class Branches, class Result>
class select_rule {
public:
    using result_type = Result;

    explicit select_rule(select_order order) noexcept : order_(order) {}

    bool is_fair() const noexcept { return order_ == select_order::random; }
    bool has_winner() const noexcept { return winner_.has_value(); }
    bool has_won(const Branches&) const noexcept { return has_winner(); }
    bool failed(std::size_t) const noexcept { return false; }
    bool succeeded(std::size_t index) noexcept
    {
        if (!winner_)
            winner_ = index;
        return true;
    }

    result_type take(Branches& branches)
    {
        if constexpr (requires { branches.take(*winner_); })
            return result_type{*winner_, branches.take(*winner_)};
        else
            return branches.template take_variant<result_type>(*winner_);
    }
    static result_type no_value()
    {
        if constexpr (requires { std::variant_size<result_type>::value; }) {
            constexpr std::size_t alternative = first_default<result_type>();
            static_assert(alternative < std::variant_size_v<result_type>,
                          "At least one operation of async_select must have a result that is "
                          "default constructible. A failed call passes a default value.");
            return result_type(std::in_place_index<alternative>);
        } else {
            return result_type{};
        }
    }

private:
    select_order order_;
    std::optional<std::size_t> winner_;
};

template <class Executor, class... Args>
auto select_tuple(const Executor& executor, select_order order, Args&&... args)
{
    const auto start = [&]<class Token, class... Ops>(Token&& token, Ops&&... ops) {
        using branches = tuple_branches<std::remove_cvref_t<Ops>...>;
        using result = std::variant<result_value_t<work_signature_t<Ops>>...>;
        using rule = select_rule<branches, result>;
        return asio::async_initiate<Token, void(std::exception_ptr, result)>(
            initiate_race<Executor, branches, rule>{executor, rule(order)}, token,
            std::forward<Ops>(ops)...);
    };
    return with_operations_and_token(start, std::forward<Args>(args)...);
}

template <class Executor, class Range, class Token>
auto select_range(const Executor& executor, select_order order, Range&& range, Token&& token)
{
    using op = std::ranges::range_value_t<Range>;
    using branches = vector_branches<op>;
    using result = select_result<result_value_t<work_signature_t<op>>>;
    using rule = select_rule<branches, result>;
    return asio::async_initiate<Token, void(std::exception_ptr, result)>(
        initiate_race<Executor, branches, rule>{executor, rule(order)}, token,
        std::forward<Range>(range));
}

// A range of operations of one type.
template <class Range>
concept operation_range =
    std::ranges::input_range<Range> && work_operation<std::ranges::range_value_t<Range>>;

template <class T>
concept any_executor_type = asio::execution::is_executor<std::remove_cvref_t<T>>::value;

} // namespace detail

/// Runs operations at the same time until the first one succeeds. The others are cancelled and
/// awaited: with Turnstile's primitives they have taken nothing.
///
/// An operation is an `operation`, or an `asio::awaitable`. All run on one strand on top of the
/// handler's associated executor, so the call is safe on an executor that several threads run. They
/// are started in the written order, unless `select_order::random` is the first argument. If an
/// operation has succeeded already, the rest is not started. The completion token is the last
/// argument, by default `use_awaitable`. A handler without an associated executor needs an executor
/// as the first argument.
///
/// A failure does not end the call while another operation may still succeed. To end it with an
/// error, for example of a socket, start that operation with `as_tuple(deferred)`: it then succeeds
/// with a tuple that begins with the error.
///
/// @par Completes when
/// one operation has succeeded, or all have failed, and every started operation has completed. An
/// operation that ignores its cancellation is awaited all the same.
/// @par Completion signature
/// `void(std::exception_ptr, std::variant<Values...>)`. The index of the variant is the position of
/// the operation that has succeeded. The value of an operation without a result is
/// `std::monostate`, that of several results a `std::tuple`. At least one value must be default
/// constructible.
/// @par Errors
/// If all operations fail: the failure of a single operation, or `multiple_errors` with all
/// failures, in the order in which they occurred. An exception of an initiating function is a
/// failure of its operation.
/// @par Executor
/// The handler's associated executor, else the executor argument.
/// @par Per-operation cancellation
/// Terminal, partial and total: every operation is cancelled, with the same type. If none succeeds
/// after that, the call fails with `operation_aborted`.
/// @par Cancel safety
/// That of the operations. A call that is cancelled while the operations of Turnstile's primitives
/// wait has taken nothing.
template <class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_select(Args&&... args)
{
    return detail::select_tuple(detail::no_executor(), select_order::written,
                                std::forward<Args>(args)...);
}

/// Equivalent to `async_select(args...)`, and starts the operations in the given order.
template <class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_select(select_order order, Args&&... args)
{
    return detail::select_tuple(detail::no_executor(), order, std::forward<Args>(args)...);
}

/// Equivalent to `async_select(args...)`, for handlers without an associated executor.
template <detail::any_executor_type Executor, class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_select(const Executor& executor, Args&&... args)
{
    return detail::select_tuple(executor, select_order::written, std::forward<Args>(args)...);
}
template <detail::any_executor_type Executor, class... Args>
    requires detail::are_operations_and_token<Args...>
auto async_select(const Executor& executor, select_order order, Args&&... args)
{
    return detail::select_tuple(executor, order, std::forward<Args>(args)...);
}

/// Equivalent to `async_select(args...)`, for a range of operations of one type. An rvalue range is
/// moved from; the operations of an lvalue range are copied.
///
/// @par Completion signature
/// `void(std::exception_ptr, select_result<Value>)`.
/// @par Errors
/// As above; and `errc::invalid_argument` if the range is empty.
template <detail::operation_range Range, class Token = asio::use_awaitable_t<>>
auto async_select(Range&& range, Token&& token = Token())
{
    return detail::select_range(detail::no_executor(), select_order::written,
                                std::forward<Range>(range), std::forward<Token>(token));
}
template <detail::operation_range Range, class Token = asio::use_awaitable_t<>>
auto async_select(select_order order, Range&& range, Token&& token = Token())
{
    return detail::select_range(detail::no_executor(), order, std::forward<Range>(range),
                                std::forward<Token>(token));
}
template <detail::any_executor_type Executor, detail::operation_range Range,
          class Token = detail::call_token_t<Executor>>
auto async_select(const Executor& executor, Range&& range, Token&& token = Token())
{
    return detail::select_range(executor, select_order::written, std::forward<Range>(range),
                                std::forward<Token>(token));
}

} // namespace turnstile::inline v0_1
