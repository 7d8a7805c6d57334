// SPDX-License-Identifier: BSL-1.0
// One receiver of a broadcast, whose values are the grants.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/channel/broadcast.hpp>

#include <optional>

namespace contract {

template <class Threading>
struct broadcast_receive
    : subject_base<turnstile::basic_broadcast<int, asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_broadcast<int, asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 5;

    explicit broadcast_receive(const asio::any_io_executor& executor)
        : base(executor, capacity), receiver(this->object->subscribe())
    {
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return receiver->async_receive(std::forward<Token>(token));
    }
    auto async_op() { return receiver->async_receive(); }
    bool try_op() { return static_cast<bool>(receiver->try_receive()); }
    void grant() // never throws
    {
        ++sent;
        this->object->send(value);
    }
    std::size_t available() const { return receiver->available(); }
    template <class Message>
    void consume(Message message)
    {
        BOOST_TEST(message.missed() == 0U);
        BOOST_TEST_REQUIRE(static_cast<bool>(message));
        BOOST_TEST(*message == 7);
    }
    void destroy()
    {
        if (sent % 2 == 0) // either end may be destroyed first
            receiver.reset();
        base::destroy();
        receiver.reset();
    }

    std::optional<typename base::object_type::receiver_type> receiver;
    turnstile::shared_value<int, Threading> value = decltype(value)::make(7);
    int sent = 0;
};

using broadcast_subjects =
    std::tuple<broadcast_receive<thread_safe>, broadcast_receive<strand_confined>>;

} // namespace contract
