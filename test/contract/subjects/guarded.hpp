// SPDX-License-Identifier: BSL-1.0
// The waiting operations of guarded and shared_guarded. The subject holds a handle, and gives it
// back to grant; it keeps the handle of a completed operation.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/work/guarded.hpp>
#include <turnstile/work/shared_guarded.hpp>

#include <tuple>
#include <utility>

namespace contract {

template <class Object>
struct guarded_lock : subject_base<Object> {
    using base = subject_base<Object>;

    explicit guarded_lock(const asio::any_io_executor& executor)
        : base(executor, 1), held_(this->object->try_lock())
    {
        BOOST_TEST_REQUIRE(held_.owns_lock());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_lock(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_lock(); }
    bool try_op() { return keep(this->object->try_lock()); }
    void grant() { held_ = {}; }
    std::size_t available() const { return this->object->is_locked() ? 0 : 1; }
    void consume(typename Object::lock_type handle) { BOOST_TEST(keep(std::move(handle))); }

private:
    bool keep(typename Object::lock_type handle)
    {
        const bool owns = handle.owns_lock();
        if (owns)
            held_ = std::move(handle);
        return owns;
    }

    typename Object::lock_type held_;
};

// When the writer unlocks, all readers are granted.
template <class Threading>
struct guarded_read
    : subject_base<turnstile::basic_shared_guarded<int, asio::any_io_executor, Threading>> {
    using object_type = turnstile::basic_shared_guarded<int, asio::any_io_executor, Threading>;
    using base = subject_base<object_type>;
    static constexpr bool is_broadcast = true;

    explicit guarded_read(const asio::any_io_executor& executor)
        : base(executor, 1), held_(this->object->try_lock())
    {
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_read(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_read(); }
    bool try_op() { return this->object->try_read().owns_lock(); }
    void grant() { held_ = {}; }
    std::size_t available() const { return this->object->is_locked() ? 0 : 1; }
    void consume(typename object_type::read_lock_type handle) { BOOST_TEST(*handle == 1); }

private:
    typename object_type::lock_type held_;
};

template <class Threading>
using guarded_int = turnstile::basic_guarded<int, asio::any_io_executor, Threading>;
template <class Threading>
using shared_guarded_int = turnstile::basic_shared_guarded<int, asio::any_io_executor, Threading>;

using guarded_subjects =
    std::tuple<guarded_lock<guarded_int<thread_safe>>, guarded_lock<guarded_int<strand_confined>>,
               guarded_lock<shared_guarded_int<thread_safe>>,
               guarded_lock<shared_guarded_int<strand_confined>>, guarded_read<thread_safe>,
               guarded_read<strand_confined>>;

} // namespace contract
