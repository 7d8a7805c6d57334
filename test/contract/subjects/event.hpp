// SPDX-License-Identifier: BSL-1.0
// The subjects of event::async_wait.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/event.hpp>

namespace contract {

template <class Threading>
struct event_wait : subject_base<turnstile::basic_event<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_event<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
    bool try_op() { return this->object->is_set(); }
    void grant() { this->object->set(); }
    std::size_t available() const { return this->object->is_set() ? 1 : 0; }
    void consume() {}
};

using event_subjects = std::tuple<event_wait<thread_safe>, event_wait<strand_confined>>;

} // namespace contract
