// SPDX-License-Identifier: BSL-1.0
// The subjects of mutex::async_lock.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/mutex.hpp>

namespace contract {

template <class Threading>
struct mutex_lock : subject_base<turnstile::basic_mutex<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_mutex<asio::any_io_executor, Threading>>;

    explicit mutex_lock(const asio::any_io_executor& executor) : base(executor)
    {
        BOOST_TEST_REQUIRE(this->object->try_lock());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_lock(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_lock(); }
    bool try_op() { return this->object->try_lock(); }
    void grant() { this->object->unlock(); }
    std::size_t available() const { return this->object->is_locked() ? 0 : 1; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

using mutex_subjects = std::tuple<mutex_lock<thread_safe>, mutex_lock<strand_confined>>;

} // namespace contract
