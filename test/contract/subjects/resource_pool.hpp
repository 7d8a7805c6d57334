// SPDX-License-Identifier: BSL-1.0
// The waits of a resource_pool: async_acquire and async_close. The resources come from outside, so
// no operation runs.
#pragma once

#include "contract/subjects.hpp"
#include "kit/scripted_clock.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <chrono>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

template <class Threading>
using pool_of_numbers =
    turnstile::basic_resource_pool<int, asio::any_io_executor, Threading, kit::scripted_clock>;

// All resources are leased at first, and granting returns one.
template <class Threading>
struct resource_pool_subject : subject_base<pool_of_numbers<Threading>> {
    using base = subject_base<pool_of_numbers<Threading>>;
    using lease_type = typename pool_of_numbers<Threading>::lease_type;

    resource_pool_subject(const asio::any_io_executor& executor, std::size_t size)
        : base(executor, turnstile::resource_pool_options{.max_size = size, .max_creating = 1},
               turnstile::resource_operations<int>{
                   .create = []() -> asio::awaitable<int> { co_return 0; }})
    {
        taken_.reserve(size);
        while (this->object->try_add(7))
            taken_.push_back(this->object->try_acquire());
    }
    ~resource_pool_subject() { taken_.clear(); }

    void grant() { taken_.pop_back(); }
    void destroy()
    {
        taken_.clear();
        base::destroy();
    }

protected:
    std::vector<lease_type> taken_;
};

template <class Threading>
struct resource_acquire : resource_pool_subject<Threading> {
    using base = resource_pool_subject<Threading>;
    using lease_type = typename base::lease_type;
    static constexpr std::size_t capacity = 5;
    static constexpr std::size_t places = 256;

    explicit resource_acquire(const asio::any_io_executor& executor) : base(executor, places) {}

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(); }
    bool try_op()
    {
        auto lease = this->object->try_acquire();
        if (!lease)
            return false;
        consume(std::move(lease));
        return true;
    }
    std::size_t available() const { return places - this->object->stats().in_use; }
    void consume(lease_type lease)
    {
        BOOST_TEST(static_cast<bool>(lease));
        this->taken_.push_back(std::move(lease));
    }
};

// The same with a limit, which does not pass.
template <class Threading>
struct resource_acquire_within : resource_acquire<Threading> {
    using resource_acquire<Threading>::resource_acquire;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(std::chrono::hours(1), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(std::chrono::hours(1)); }
};

// The pool is empty when its one resource is returned.
template <class Threading>
struct resource_close : resource_pool_subject<Threading> {
    using base = resource_pool_subject<Threading>;
    static constexpr bool is_broadcast = true;

    explicit resource_close(const asio::any_io_executor& executor) : base(executor, 1) {}

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_close(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_close(); }
    void grant() { this->taken_.clear(); }
    std::size_t available() const { return this->object->stats().in_use == 0 ? 1 : 0; }
    void consume() {}
};

using resource_pool_subjects =
    std::tuple<resource_acquire<thread_safe>, resource_acquire<strand_confined>,
               resource_acquire_within<thread_safe>, resource_acquire_within<strand_confined>,
               resource_close<thread_safe>, resource_close<strand_confined>>;

} // namespace contract
