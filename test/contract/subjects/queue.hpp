// SPDX-License-Identifier: BSL-1.0
// The waiting operations of queue, also used for priority_queue.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/channel/queue.hpp>

namespace contract {

constexpr std::size_t queue_capacity = 5;

template <class Threading>
using plain_queue = turnstile::basic_queue<int, asio::any_io_executor, Threading>;

// A queue that already has all the nodes it needs, so that granting allocates nothing.
template <class Queue>
struct queue_subject : subject_base<Queue> {
    using base = subject_base<Queue>;
    static constexpr bool has_priorities = requires(Queue & q) { q.try_push(0, 0); };
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = queue_capacity;

    explicit queue_subject(const asio::any_io_executor& executor) : base(executor, capacity)
    {
        for (std::size_t i = 0; i != capacity; ++i)
            put();
        while (take()) {
        }
    }

    bool put()
    {
        if constexpr (has_priorities)
            return static_cast<bool>(this->object->try_push(0, 0));
        else
            return this->object->try_push(0);
    }
    bool take()
    {
        const auto item = this->object->try_pop();
        if (item)
            this->object->task_done();
        return item.has_value();
    }
    std::size_t room() const { return capacity - this->object->size(); }
};

template <class Queue>
struct queue_pop : queue_subject<Queue> {
    using queue_subject<Queue>::queue_subject;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_pop(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_pop(); }
    bool try_op() { return this->take(); }
    void grant() { BOOST_TEST(this->put()); }
    std::size_t available() const { return this->object->size(); }
    void consume(int) { this->object->task_done(); }
};

template <class Queue>
struct queue_pop_n : queue_subject<Queue> {
    using queue_subject<Queue>::queue_subject;

    // At most one item, so that each operation uses one grant.
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_pop_n(1, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_pop_n(1); }
    bool try_op() { return this->object->try_pop_n(1).size() == 1; }
    void grant() { BOOST_TEST(this->put()); }
    std::size_t available() const { return this->object->size(); }
    void consume(const std::vector<int>& items) { BOOST_TEST(items.size() == 1U); }
};

template <class Queue>
struct full_queue : queue_subject<Queue> {
    explicit full_queue(const asio::any_io_executor& executor) : queue_subject<Queue>(executor)
    {
        while (this->put()) {
        }
    }
    void grant() { BOOST_TEST(this->take()); }
    std::size_t available() const { return this->room(); }
};

template <class Queue>
struct queue_push : full_queue<Queue> {
    using full_queue<Queue>::full_queue;

    template <class Token>
    auto async_op(Token&& token)
    {
        if constexpr (queue_subject<Queue>::has_priorities)
            return this->object->async_push(0, 0, std::forward<Token>(token));
        else
            return this->object->async_push(0, std::forward<Token>(token));
    }
    auto async_op() { return async_op(turnstile::default_token_t<asio::any_io_executor>()); }
    bool try_op() { return this->put(); }
    template <class... Handle>
    void consume(Handle... handle)
    {
        BOOST_TEST((static_cast<bool>(handle) && ...));
    }
};

template <class Queue>
struct queue_reserve : full_queue<Queue> {
    using full_queue<Queue>::full_queue;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_reserve(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_reserve(); }
    bool try_op()
    {
        auto place = this->object->try_reserve();
        const bool taken = static_cast<bool>(place);
        if (taken)
            use(place);
        return taken;
    }
    static void use(typename Queue::reservation_type& place)
    {
        if constexpr (queue_subject<Queue>::has_priorities)
            place.push(0, 0);
        else
            place.push(0);
    }
    std::size_t available() const
    {
        std::vector<typename Queue::reservation_type> places;
        while (auto place = this->object->try_reserve())
            places.push_back(std::move(place));
        return places.size();
    }
    template <class Place>
    void consume(Place place)
    {
        BOOST_TEST(static_cast<bool>(place));
        use(place);
    }
};

template <class Queue>
struct queue_join : queue_subject<Queue> {
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit queue_join(const asio::any_io_executor& executor) : queue_subject<Queue>(executor)
    {
        BOOST_TEST_REQUIRE(this->put());
        BOOST_TEST_REQUIRE(this->object->try_pop().has_value());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_join(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_join(); }
    bool try_op() { return available() != 0; }
    void grant()
    {
        error_code is_done_already;
        this->object->task_done(is_done_already);
    }
    std::size_t available() const { return this->object->unfinished() == 0 ? 1 : 0; }
    void consume() {}
};

template <class Safe, class Confined>
using subjects_of_queues = std::tuple<            //
    queue_pop<Safe>, queue_pop<Confined>,         //
    queue_pop_n<Safe>, queue_pop_n<Confined>,     //
    queue_push<Safe>, queue_push<Confined>,       //
    queue_reserve<Safe>, queue_reserve<Confined>, //
    queue_join<Safe>, queue_join<Confined>>;

using queue_subjects = subjects_of_queues<plain_queue<thread_safe>, plain_queue<strand_confined>>;

} // namespace contract
