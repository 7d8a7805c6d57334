// SPDX-License-Identifier: BSL-1.0
// Waiting for a change of a watch, and for a value that satisfies a predicate.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/channel/watch.hpp>

namespace contract {

template <class Threading>
struct watch_subject : subject_base<turnstile::basic_watch<int, asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_watch<int, asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit watch_subject(const asio::any_io_executor& executor) : base(executor, 0) {}

    bool try_op() { return available() != 0; }
    void grant() { this->object->set(one); } // never throws
    std::size_t available() const { return *this->object->get() == 1 ? 1 : 0; }
    template <class Snapshot>
    void consume(Snapshot snapshot)
    {
        BOOST_TEST_REQUIRE(static_cast<bool>(snapshot));
        BOOST_TEST(*snapshot == 1);
        BOOST_TEST(snapshot.version() > 1U);
    }

    turnstile::shared_value<int, Threading> one = decltype(one)::make(1);
};

template <class Threading>
struct watch_wait_changed : watch_subject<Threading> {
    using watch_subject<Threading>::watch_subject;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_changed(1, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_changed(1); }
};

template <class Threading>
struct watch_wait_for : watch_subject<Threading> {
    static constexpr bool order_is_strict = false;
    using watch_subject<Threading>::watch_subject;
    static bool is_one(int value) { return value == 1; }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_for(&is_one, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_for(&is_one); }
};

using watch_subjects =
    std::tuple<watch_wait_changed<thread_safe>, watch_wait_changed<strand_confined>,
               watch_wait_for<thread_safe>, watch_wait_for<strand_confined>>;

} // namespace contract
