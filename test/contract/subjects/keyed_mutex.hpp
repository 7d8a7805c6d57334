// SPDX-License-Identifier: BSL-1.0
// Waiting for the lock of one key, and of several, of which the subject holds one.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/work/keyed_mutex.hpp>

#include <functional>
#include <tuple>
#include <utility>

namespace contract {

template <class Threading>
using keyed_mutex_of = turnstile::basic_keyed_mutex<int, std::hash<int>, std::equal_to<int>,
                                                    asio::any_io_executor, Threading>;

struct one_key {
    template <class Mutex>
    using handle = typename Mutex::lock_type;
    static auto async(auto& m, auto&&... token)
    {
        return m.async_lock(1, std::forward<decltype(token)>(token)...);
    }
    static auto attempt(auto& m) { return m.try_lock(1); }
};
struct several_keys {
    template <class Mutex>
    using handle = typename Mutex::lock_set_type;
    static auto async(auto& m, auto&&... token)
    {
        return m.async_lock_all({2, 1, 2, 3}, std::forward<decltype(token)>(token)...);
    }
    static auto attempt(auto& m) { return m.try_lock_all({3, 1, 2}); }
};

template <class Threading, class Way>
struct keyed_mutex_lock : subject_base<keyed_mutex_of<Threading>> {
    using base = subject_base<keyed_mutex_of<Threading>>;
    using handle = typename Way::template handle<keyed_mutex_of<Threading>>;

    explicit keyed_mutex_lock(const asio::any_io_executor& executor)
        : base(executor), held_(Way::attempt(*this->object))
    {
        BOOST_TEST_REQUIRE(held_.owns_lock());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return Way::async(*this->object, std::forward<Token>(token));
    }
    auto async_op() { return Way::async(*this->object); }
    bool try_op() { return keep(Way::attempt(*this->object)); }
    void grant() { held_ = {}; }
    std::size_t available() const { return this->object->size() == 0 ? 1 : 0; }
    void consume(handle lock) { BOOST_TEST(keep(std::move(lock))); }

private:
    bool keep(handle lock)
    {
        const bool owns = lock.owns_lock();
        if (owns)
            held_ = std::move(lock);
        return owns;
    }

    handle held_;
};

using keyed_mutex_subjects =
    std::tuple<keyed_mutex_lock<thread_safe, one_key>, keyed_mutex_lock<strand_confined, one_key>,
               keyed_mutex_lock<thread_safe, several_keys>,
               keyed_mutex_lock<strand_confined, several_keys>>;

} // namespace contract
