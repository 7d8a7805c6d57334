// SPDX-License-Identifier: BSL-1.0
// The waiting operations of latch.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/latch.hpp>

#include <cstdint>

namespace contract {

// Only grant() makes the count reach zero.
template <class Threading>
struct latch_base : subject_base<turnstile::basic_latch<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_latch<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit latch_base(const asio::any_io_executor& executor)
        : base(executor, std::uint64_t(1'000'000))
    {
    }
    bool try_op() { return this->object->try_wait(); }
    void grant() { this->object->count_down(this->object->count()); }
    std::size_t available() const { return this->object->try_wait() ? 1 : 0; }
    void consume() {}
};

template <class Threading>
struct latch_wait : latch_base<Threading> {
    using latch_base<Threading>::latch_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
};

// Each operation counts one arrival, or none if the latch is open.
template <class Threading>
struct latch_arrive_and_wait : latch_base<Threading> {
    using latch_base<Threading>::latch_base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_arrive_and_wait(arrivals(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_arrive_and_wait(arrivals()); }

private:
    std::uint64_t arrivals() const { return this->object->try_wait() ? 0 : 1; }
};

using latch_subjects =
    std::tuple<latch_wait<thread_safe>, latch_wait<strand_confined>,
               latch_arrive_and_wait<thread_safe>, latch_arrive_and_wait<strand_confined>>;

} // namespace contract
