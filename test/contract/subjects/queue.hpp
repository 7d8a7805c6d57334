// The waiting operations of queue.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/channel/queue.hpp>

namespace contract {

constexpr std::size_t queue_capacity = 5;

// A queue that has had all the nodes it needs, so that granting allocates nothing.
template <class Threading>
struct queue_subject : subject_base<turnstile::basic_queue<int, asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_queue<int, asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = queue_capacity;

    explicit queue_subject(const asio::any_io_executor& executor) : base(executor, capacity)
    {
        for (std::size_t i = 0; i != capacity; ++i)
            put();
        while (take()) {
        }
    }

    bool put() { return this->object->try_push(next_in++); }
    bool take()
    {
        const auto item = this->object->try_pop();
        if (item)
            this->object->task_done();
        return item.has_value();
    }
    std::size_t room() const { return capacity - this->object->size(); }

    int next_in = 0;
};

template <class Threading>
struct queue_pop : queue_subject<Threading> {
    using queue_subject<Threading>::queue_subject;

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

template <class Threading>
struct queue_pop_n : queue_subject<Threading> {
    using queue_subject<Threading>::queue_subject;

    // At most one, so that each grant is used by one.
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

template <class Threading>
struct full_queue : queue_subject<Threading> {
    explicit full_queue(const asio::any_io_executor& executor) : queue_subject<Threading>(executor)
    {
        while (this->put()) {
        }
    }
    void grant() { BOOST_TEST(this->take()); }
    std::size_t available() const { return this->room(); }
};

template <class Threading>
struct queue_push : full_queue<Threading> {
    using full_queue<Threading>::full_queue;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_push(0, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_push(0); }
    bool try_op() { return this->put(); }
    void consume() {}
};

template <class Threading>
struct queue_reserve : full_queue<Threading> {
    using full_queue<Threading>::full_queue;

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
            place.push(0);
        return taken;
    }
    std::size_t available() const
    {
        std::vector<typename queue_subject<Threading>::object_type::reservation_type> places;
        while (auto place = this->object->try_reserve())
            places.push_back(std::move(place));
        return places.size();
    }
    template <class Place>
    void consume(Place place)
    {
        BOOST_TEST(static_cast<bool>(place));
        place.push(0);
    }
};

template <class Threading>
struct queue_join : queue_subject<Threading> {
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit queue_join(const asio::any_io_executor& executor) : queue_subject<Threading>(executor)
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

using queue_subjects = std::tuple<                              //
    queue_pop<thread_safe>, queue_pop<strand_confined>,         //
    queue_pop_n<thread_safe>, queue_pop_n<strand_confined>,     //
    queue_push<thread_safe>, queue_push<strand_confined>,       //
    queue_reserve<thread_safe>, queue_reserve<strand_confined>, //
    queue_join<thread_safe>, queue_join<strand_confined>>;

} // namespace contract
