// SPDX-License-Identifier: BSL-1.0
// Waiting for permits of a rate limiter. The clock grants them.
#pragma once

#include "contract/subjects.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/resilience/rate_limiter.hpp>

#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

template <class Threading, unsigned N>
struct rate_acquire
    : subject_base<
          turnstile::basic_rate_limiter<asio::any_io_executor, Threading, kit::scripted_clock>> {
    using base = subject_base<
        turnstile::basic_rate_limiter<asio::any_io_executor, Threading, kit::scripted_clock>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 5;
    static constexpr std::chrono::microseconds pace{1};

    explicit rate_acquire(const asio::any_io_executor& executor)
        : base(executor, turnstile::bandwidth{1, pace, 10 * capacity * N})
    {
        BOOST_TEST_REQUIRE(this->object->try_acquire(10 * capacity * N));
        all().push_back(this);
    }
    rate_acquire(const rate_acquire&) = delete;
    rate_acquire& operator=(const rate_acquire&) = delete;
    ~rate_acquire() { std::erase(all(), this); }

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(N, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(N); }
    bool try_op() { return this->object->try_acquire(N); }
    // The clock advances for all limiters, but only this one may earn a permit.
    void grant()
    {
        for (rate_acquire* other : all()) {
            if (other != this && other->object)
                other->earn_nothing();
        }
        kit::scripted_clock::advance(N * pace);
    }
    std::size_t available() const { return this->object->available() / N; }
    void consume() {}

private:
    void earn_nothing()
    {
        turnstile::bandwidth limit = this->object->limits().front();
        limit.burst -= N;
        this->object->set_limits(limit);
    }
    static std::vector<rate_acquire*>& all()
    {
        static std::vector<rate_acquire*> instance;
        return instance;
    }
};

using rate_limiter_subjects =
    std::tuple<rate_acquire<thread_safe, 1>, rate_acquire<strand_confined, 1>,
               rate_acquire<thread_safe, 3>, rate_acquire<strand_confined, 3>>;

} // namespace contract
