// SPDX-License-Identifier: BSL-1.0
// The subjects of semaphore::async_acquire, of one permit and of several.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/semaphore.hpp>

namespace contract {

template <class Threading, unsigned N>
struct semaphore_acquire
    : subject_base<turnstile::basic_semaphore<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_semaphore<asio::any_io_executor, Threading>>;
    static constexpr std::size_t capacity = 5;

    explicit semaphore_acquire(const asio::any_io_executor& executor) : base(executor, N - 1) {}
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(N, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(N); }
    bool try_op() { return this->object->try_acquire(N).detach() == N; }
    void grant() { this->object->release(N); }
    std::size_t available() const { return this->object->available() / N; }
    template <class Permit>
    void consume(Permit permit)
    {
        BOOST_TEST(permit.detach() == N);
    }
};

using semaphore_subjects =
    std::tuple<semaphore_acquire<thread_safe, 1>, semaphore_acquire<strand_confined, 1>,
               semaphore_acquire<thread_safe, 3>, semaphore_acquire<strand_confined, 3>>;

} // namespace contract
