// SPDX-License-Identifier: BSL-1.0
// A oneshot for each operation, because it serves only one. A grant applies to all existing pairs
// and to those that are added later.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/channel/oneshot.hpp>

#include <deque>

namespace contract {

template <class Threading>
struct oneshot_subject : subject_traits {
    using object_type = turnstile::basic_oneshot<int, asio::any_io_executor, Threading>;
    static constexpr bool is_confined = Threading::is_confined;
    static constexpr bool is_broadcast = true;
    static constexpr bool order_is_strict = false;
    static constexpr std::size_t capacity = 1;

    explicit oneshot_subject(const asio::any_io_executor& executor)
        : object(std::make_unique<object_type>(executor)), executor_(executor)
    {
    }

    void destroy()
    {
        object.reset();
        pairs.clear();
    }
    bool try_op() { return granted; }

    std::unique_ptr<object_type> object; // only for its types and its executor
    std::deque<object_type> pairs;
    bool granted = false;

protected:
    object_type& add() { return pairs.emplace_back(executor_); }

private:
    asio::any_io_executor executor_;
};

template <class Threading>
struct oneshot_receive : oneshot_subject<Threading> {
    using oneshot_subject<Threading>::oneshot_subject;

    template <class Token>
    auto async_op(Token&& token)
    {
        return next().async_receive(std::forward<Token>(token));
    }
    auto async_op() { return next().async_receive(); }
    void grant()
    {
        for (auto& pair : this->pairs)
            send_to(pair);
        this->granted = true;
    }
    // Whether a value was sent that is available or was received.
    std::size_t available() const
    {
        if (this->pairs.empty())
            return this->granted ? 1 : 0;
        std::size_t there = 0;
        for (const auto& pair : this->pairs)
            there += pair.receiver.is_ready() ? 1 : 0;
        return there + consumed != 0 ? 1 : 0;
    }
    void consume(int value)
    {
        ++consumed;
        BOOST_TEST(value == 7);
    }

private:
    static void send_to(typename oneshot_receive::object_type& pair)
    {
        error_code sent_before;
        pair.sender.send(7, sent_before);
    }
    auto& next()
    {
        auto& pair = this->add();
        if (this->granted)
            send_to(pair);
        return pair.receiver;
    }

    std::size_t consumed = 0;
};

template <class Threading>
struct oneshot_receiver_gone : oneshot_subject<Threading> {
    using oneshot_subject<Threading>::oneshot_subject;

    template <class Token>
    auto async_op(Token&& token)
    {
        return next().async_wait_receiver_gone(std::forward<Token>(token));
    }
    auto async_op() { return next().async_wait_receiver_gone(); }
    void grant()
    {
        for (auto& pair : this->pairs)
            pair.receiver.close();
        this->granted = true;
    }
    std::size_t available() const { return this->granted ? 1 : 0; }
    void consume() {}

private:
    auto& next()
    {
        auto& pair = this->add();
        if (this->granted)
            pair.receiver.close();
        return pair.sender;
    }
};

using oneshot_subjects =
    std::tuple<oneshot_receive<thread_safe>, oneshot_receive<strand_confined>,
               oneshot_receiver_gone<thread_safe>, oneshot_receiver_gone<strand_confined>>;

} // namespace contract
