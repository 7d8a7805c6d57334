// SPDX-License-Identifier: BSL-1.0
// The wait for a place in a bulkhead. The clock does not advance, so no wait times out.
#pragma once

#include "contract/subjects.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/resilience/bulkhead.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

// All places are taken at first, and granting gives one back. The permits of completed operations
// are kept in taken_.
template <class Threading>
struct bulkhead_acquire
    : subject_base<
          turnstile::basic_bulkhead<asio::any_io_executor, Threading, kit::scripted_clock>> {
    using bulkhead_type =
        turnstile::basic_bulkhead<asio::any_io_executor, Threading, kit::scripted_clock>;
    using permit_type = typename bulkhead_type::permit_type;
    using base = subject_base<bulkhead_type>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 5;
    static constexpr std::size_t places = 256;

    explicit bulkhead_acquire(const asio::any_io_executor& executor)
        : base(executor,
               turnstile::bulkhead_options{.limit = places,
                                           .max_waiters = std::numeric_limits<std::uint64_t>::max(),
                                           .max_wait = wait})
    {
        taken_.reserve(places);
        while (try_op()) {
        }
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(); }
    bool try_op()
    {
        auto permit = this->object->try_acquire();
        if (!permit)
            return false;
        consume(std::move(permit));
        return true;
    }
    void grant() { taken_.pop_back(); }
    std::size_t available() const
    {
        const auto stats = this->object->stats();
        return static_cast<std::size_t>(stats.limit - stats.in_flight);
    }
    void consume(permit_type permit)
    {
        BOOST_TEST(static_cast<bool>(permit));
        taken_.push_back(std::move(permit));
    }
    void destroy()
    {
        taken_.clear();
        base::destroy();
    }
    ~bulkhead_acquire() { taken_.clear(); }

private:
    static constexpr std::chrono::hours wait{1};
    std::vector<permit_type> taken_;
};

using bulkhead_subjects =
    std::tuple<bulkhead_acquire<thread_safe>, bulkhead_acquire<strand_confined>>;

} // namespace contract
