// SPDX-License-Identifier: BSL-1.0
// The waiting operations of counter.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/counter.hpp>

#include <cstdint>

namespace contract {

// A grant moves the value from From to To.
template <class Threading, int From, int To>
struct counter_base : subject_base<turnstile::basic_counter<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_counter<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit counter_base(const asio::any_io_executor& executor) : base(executor, From) {}

    bool try_op() { return this->object->value() == To; }
    void grant() { this->object->add(To - this->object->value()); }
    std::size_t available() const { return this->object->value() == To ? 1 : 0; }
    void consume() {}
};

template <class Threading>
struct counter_wait_zero : counter_base<Threading, 1, 0> {
    using counter_base<Threading, 1, 0>::counter_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_zero(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_zero(); }
};

template <class Threading>
struct counter_wait_at_most : counter_base<Threading, 7, 5> {
    using counter_base<Threading, 7, 5>::counter_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_at_most(6, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_at_most(6); }
};

template <class Threading>
struct counter_wait_at_least : counter_base<Threading, 0, 5> {
    using counter_base<Threading, 0, 5>::counter_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_at_least(4, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_at_least(4); }
};

inline bool is_five(std::int64_t value) { return value == 5; }

template <class Threading>
struct counter_wait_predicate : counter_base<Threading, 0, 5> {
    using counter_base<Threading, 0, 5>::counter_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(&is_five, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(&is_five); }
};

using counter_subjects =
    std::tuple<counter_wait_zero<thread_safe>, counter_wait_zero<strand_confined>,
               counter_wait_at_most<thread_safe>, counter_wait_at_most<strand_confined>,
               counter_wait_at_least<thread_safe>, counter_wait_at_least<strand_confined>,
               counter_wait_predicate<thread_safe>, counter_wait_predicate<strand_confined>>;

} // namespace contract
