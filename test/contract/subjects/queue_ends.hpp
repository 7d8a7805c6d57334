// SPDX-License-Identifier: BSL-1.0
// The waiting operations of the senders and receivers of queue and priority_queue, and reservations
// of several places.
#pragma once

#include "contract/subjects/priority_queue.hpp"
#include "contract/subjects/queue.hpp"

namespace contract {

template <class Queue>
struct sender_push : full_queue<Queue> {
    using full_queue<Queue>::full_queue;

    template <class Token>
    auto async_op(Token&& token)
    {
        if constexpr (queue_subject<Queue>::has_priorities)
            return sender.async_push(0, 0, std::forward<Token>(token));
        else
            return sender.async_push(0, std::forward<Token>(token));
    }
    auto async_op() { return async_op(turnstile::default_token_t<asio::any_io_executor>()); }
    bool try_op()
    {
        if constexpr (queue_subject<Queue>::has_priorities)
            return static_cast<bool>(sender.try_push(0, 0));
        else
            return sender.try_push(0);
    }
    template <class... Handle>
    void consume(Handle... handle)
    {
        BOOST_TEST((static_cast<bool>(handle) && ...));
    }

    typename Queue::sender_type sender = this->object->sender();
};

template <class Queue>
struct sender_reserve : queue_reserve<Queue> {
    using queue_reserve<Queue>::queue_reserve;

    template <class Token>
    auto async_op(Token&& token)
    {
        return sender.async_reserve(1, std::forward<Token>(token));
    }
    auto async_op() { return sender.async_reserve(1); }

    typename Queue::sender_type sender = this->object->sender();
};

template <class Queue>
struct receiver_pop : queue_pop<Queue> {
    using queue_pop<Queue>::queue_pop;

    template <class Token>
    auto async_op(Token&& token)
    {
        return receiver.async_pop(std::forward<Token>(token));
    }
    auto async_op() { return receiver.async_pop(); }

    typename Queue::receiver_type receiver = this->object->receiver();
};

template <class Queue>
struct receiver_pop_n : queue_pop_n<Queue> {
    using queue_pop_n<Queue>::queue_pop_n;

    template <class Token>
    auto async_op(Token&& token)
    {
        return receiver.async_pop_n(1, std::forward<Token>(token));
    }
    auto async_op() { return receiver.async_pop_n(1); }

    typename Queue::receiver_type receiver = this->object->receiver();
};

// Each operation reserves two places; a grant pops two items.
template <class Queue>
struct reserve_pair : queue_reserve<Queue> {
    static constexpr std::size_t capacity = queue_capacity / 2;

    explicit reserve_pair(const asio::any_io_executor& executor) : queue_reserve<Queue>(executor)
    {
        BOOST_TEST(this->take()); // an odd capacity: one place is free, which is not enough
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_reserve(2, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_reserve(2); }
    bool try_op()
    {
        auto places = this->object->try_reserve(2);
        const bool taken = static_cast<bool>(places);
        if (taken)
            use_all(places);
        return taken;
    }
    void grant()
    {
        BOOST_TEST(this->take());
        BOOST_TEST(this->take());
    }
    std::size_t available() const
    {
        std::vector<typename Queue::reservation_type> places;
        while (auto pair = this->object->try_reserve(2))
            places.push_back(std::move(pair));
        return places.size();
    }
    template <class Places>
    void consume(Places places)
    {
        BOOST_TEST(places.size() == 2U);
        use_all(places);
    }

private:
    template <class Places>
    static void use_all(Places& places)
    {
        while (places)
            queue_reserve<Queue>::use(places);
    }
};

template <class Safe, class Confined>
using subjects_of_queue_ends = std::tuple<          //
    sender_push<Safe>, sender_push<Confined>,       //
    sender_reserve<Safe>, sender_reserve<Confined>, //
    receiver_pop<Safe>, receiver_pop<Confined>,     //
    receiver_pop_n<Safe>, receiver_pop_n<Confined>, //
    reserve_pair<Safe>, reserve_pair<Confined>>;

using queue_end_subjects =
    subjects_of_queue_ends<plain_queue<thread_safe>, plain_queue<strand_confined>>;
using priority_queue_end_subjects =
    subjects_of_queue_ends<priorities<thread_safe>, priorities<strand_confined>>;

} // namespace contract
