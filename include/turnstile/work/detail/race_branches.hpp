// SPDX-License-Identifier: BSL-1.0
// The operations of async_select and async_all: race_branch is one of them, tuple_branches the
// operations of different types, vector_branches any number of one type. A race (race.hpp) starts
// and cancels them, and takes their values. The file also tells the operations among the arguments
// of the two functions from the completion token.
//
// Invariant: a branch does not move, because the handler of its operation points to it.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace turnstile::inline v0_1::detail {

// A child of a race, and its position. It does not depend on the type of the operation, so that the
// race finds the position of a child that has ended.
template <class Signature>
class race_child : public child_operation<Signature> {
public:
    explicit race_child(std::size_t index) noexcept : index_(index) {}

    std::size_t index() const noexcept { return index_; }

private:
    std::size_t index_;
};

// One operation of a race.
template <work_operation Op>
class race_branch : public race_child<work_signature_t<Op>> {
public:
    race_branch(std::size_t index, operation_of<Op>&& op)
        : race_child<work_signature_t<Op>>(index), op_(std::move(op))
    {
    }
    race_branch(race_branch&&) = delete;

    template <class Parent>
    void start(const Parent& parent)
    {
        start_child(op_, parent, *this);
    }

private:
    std::optional<operation_of<Op>> op_; // until it is started
};

// The branches of different types.
template <work_operation... Ops>
class tuple_branches {
public:
    using value_types = std::tuple<result_value_t<work_signature_t<Ops>>...>;
    template <std::size_t I>
    using branch_type = race_branch<std::tuple_element_t<I, std::tuple<Ops...>>>;

    template <class... Given>
    explicit tuple_branches(Given&&... ops)
        : tuple_branches(std::index_sequence_for<Ops...>(), std::forward<Given>(ops)...)
    {
    }

    static constexpr std::size_t size() noexcept { return sizeof...(Ops); }
    static std::array<std::size_t, sizeof...(Ops)> indices() noexcept { return {}; }

    // Calls f with the branch at a position, or with each one.
    template <class F>
    void visit(std::size_t index, F&& f)
    {
        for_each([&](auto& branch) {
            if (branch.index() == index)
                f(branch);
        });
    }
    template <class F>
    void for_each(F&& f)
    {
        std::apply([&](auto&... h) { (f(h.branch), ...); }, holders_);
    }

    // The value of the winner, as an alternative of a variant.
    template <class Variant>
    Variant take_variant(std::size_t index)
    {
        return take_variant<Variant>(index, std::index_sequence_for<Ops...>());
    }
    value_types take_all()
    {
        return std::apply([](auto&... h) { return value_types(h.branch.take_value()...); },
                          holders_);
    }

private:
    // Constructs a branch in place, because it cannot be moved.
    template <std::size_t I>
    struct holder {
        template <class Given>
        explicit holder(Given&& op) : branch(I, as_operation(std::forward<Given>(op)))
        {
        }
        branch_type<I> branch;
    };
    template <std::size_t... I>
    static std::tuple<holder<I>...> holders_for(std::index_sequence<I...>);

    template <std::size_t... I, class... Given>
    explicit tuple_branches(std::index_sequence<I...>, Given&&... ops)
        : holders_(std::forward<Given>(ops)...)
    {
    }

    template <class Variant, std::size_t I, std::size_t... Rest>
    Variant take_variant(std::size_t index, std::index_sequence<I, Rest...>)
    {
        if constexpr (sizeof...(Rest) > 0) {
            if (index != I)
                return take_variant<Variant>(index, std::index_sequence<Rest...>());
        }
        return Variant(std::in_place_index<I>, std::get<I>(holders_).branch.take_value());
    }

    decltype(holders_for(std::index_sequence_for<Ops...>())) holders_;
};

// Branches of one type, in any number.
template <work_operation Op>
class vector_branches {
public:
    using value_type = result_value_t<work_signature_t<Op>>;

    template <class Range>
    explicit vector_branches(Range&& range)
    {
        for (auto&& op : range) {
            if constexpr (std::is_lvalue_reference_v<Range> && !awaitable_value<Op>)
                branches_.push_back(make(Op(op)));
            else
                branches_.push_back(make(std::move(op)));
        }
        order_.resize(size());
    }

    std::size_t size() const noexcept { return branches_.size(); }
    std::vector<std::size_t> indices() noexcept { return std::move(order_); } // called once

    template <class F>
    void visit(std::size_t index, F&& f)
    {
        f(*branches_[index]);
    }
    template <class F>
    void for_each(F&& f)
    {
        for (auto& branch : branches_)
            f(*branch);
    }

    value_type take(std::size_t index) { return branches_[index]->take_value(); }
    std::vector<value_type> take_all()
    {
        std::vector<value_type> values;
        values.reserve(size());
        for (auto& branch : branches_)
            values.push_back(branch->take_value());
        return values;
    }

private:
    using branch_type = race_branch<Op>;

    template <class Given>
    std::unique_ptr<branch_type> make(Given&& op)
    {
        return std::make_unique<branch_type>(branches_.size(), as_operation(std::move(op)));
    }

    std::vector<std::unique_ptr<branch_type>> branches_;
    std::vector<std::size_t> order_; // allocated here, because a race that starts must not fail
};

// The arguments of async_select and async_all: operations, and then a completion token, if the last
// one is no operation. race_arguments finds out which.
template <class... Args>
struct race_arguments;
template <>
struct race_arguments<> {
    static constexpr bool has_token = false;
    static constexpr std::size_t operations = 0;
};
template <class... Args>
    requires(sizeof...(Args) > 0)
struct race_arguments<Args...> {
    using last = std::tuple_element_t<sizeof...(Args) - 1, std::tuple<Args...>>;
    static constexpr bool has_token = !work_operation<last>;
    static constexpr std::size_t operations = sizeof...(Args) - (has_token ? 1 : 0);
};

// Whether all arguments are operations, but for the last one, which may be a token.
template <class... Args>
constexpr bool are_operations_and_token = []<std::size_t... I>(std::index_sequence<I...>)
{
    using arguments = std::tuple<Args...>;
    return sizeof...(I) > 0 && (work_operation<std::tuple_element_t<I, arguments>> && ...);
}
(std::make_index_sequence<race_arguments<Args...>::operations>());

// Calls start(token, operations...).
template <class Start, class... Args>
auto with_operations_and_token(Start start, Args&&... args)
{
    const auto call = [&]<std::size_t... I>(std::index_sequence<I...>, auto&& given)
    {
        constexpr std::size_t count = sizeof...(I);
        if constexpr (race_arguments<Args...>::has_token) {
            return start(std::get<count>(std::move(given)), std::get<I>(std::move(given))...);
        } else {
            asio::use_awaitable_t<> token;
            return start(token, std::get<I>(std::move(given))...);
        }
    };
    return call(std::make_index_sequence<race_arguments<Args...>::operations>(),
                std::forward_as_tuple(std::forward<Args>(args)...));
}

} // namespace turnstile::inline v0_1::detail
