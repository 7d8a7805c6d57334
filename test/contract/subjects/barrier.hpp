// SPDX-License-Identifier: BSL-1.0
// The waiting operation of barrier.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/barrier.hpp>

namespace contract {

// A broadcast, because all parties of a round are granted together. There are more parties than
// operations, until a grant drops all parties but one. That completes the round of all waiters,
// and from then on each arrival is a round of its own.
template <class Threading>
struct barrier_arrive_and_wait
    : subject_base<turnstile::basic_barrier<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_barrier<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit barrier_arrive_and_wait(const asio::any_io_executor& executor)
        : base(executor, std::size_t(1'000'000))
    {
    }

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_arrive_and_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_arrive_and_wait(); }
    bool try_op() { return available() != 0; }
    void grant()
    {
        while (available() == 0) {
            const std::size_t missing = this->object->parties() - this->object->waiting();
            this->object->arrive_and_drop(missing == this->object->parties() ? missing - 1
                                                                             : missing);
        }
    }
    std::size_t available() const { return this->object->parties() == 1 ? 1 : 0; }
    void consume(std::size_t index) { BOOST_TEST(index < 1'000'000U); }
};

using barrier_subjects =
    std::tuple<barrier_arrive_and_wait<thread_safe>, barrier_arrive_and_wait<strand_confined>>;

} // namespace contract
