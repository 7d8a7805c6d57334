// SPDX-License-Identifier: BSL-1.0
// Waiting for permits of one key's bucket. The clock grants them.
#pragma once

#include "contract/subjects.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/resilience/keyed_rate_limiter.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

template <class Threading>
using scripted_keyed_limiter =
    turnstile::basic_keyed_rate_limiter<std::string, std::hash<std::string>, std::equal_to<>,
                                        asio::any_io_executor, Threading, kit::scripted_clock>;

template <class Threading>
struct keyed_rate_acquire : subject_base<scripted_keyed_limiter<Threading>> {
    using base = subject_base<scripted_keyed_limiter<Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 5;
    static constexpr std::chrono::microseconds pace{1};

    explicit keyed_rate_acquire(const asio::any_io_executor& executor)
        : base(executor, turnstile::bandwidth{1, pace, 10 * capacity}), burst_(10 * capacity)
    {
        BOOST_TEST_REQUIRE(this->object->try_acquire(key(), burst_));
        all().push_back(this);
    }
    keyed_rate_acquire(const keyed_rate_acquire&) = delete;
    keyed_rate_acquire& operator=(const keyed_rate_acquire&) = delete;
    ~keyed_rate_acquire() { std::erase(all(), this); }

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(key(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(key()); }
    bool try_op() { return this->object->try_acquire(key()); }
    // The clock advances for all limiters, but only this one may earn a permit.
    void grant()
    {
        for (keyed_rate_acquire* other : all()) {
            if (other != this && other->object)
                other->object->set_limits({1, pace, --other->burst_});
        }
        kit::scripted_clock::advance(pace);
    }
    std::size_t available() const
    {
        std::size_t n = 0;
        while (n != burst_ && this->object->time_until(key(), n + 1).count() == 0)
            ++n;
        return n;
    }
    void consume() {}

private:
    static std::string key() { return "a key"; }
    static std::vector<keyed_rate_acquire*>& all()
    {
        static std::vector<keyed_rate_acquire*> instance;
        return instance;
    }

    std::size_t burst_;
};

using keyed_rate_limiter_subjects =
    std::tuple<keyed_rate_acquire<thread_safe>, keyed_rate_acquire<strand_confined>>;

} // namespace contract
