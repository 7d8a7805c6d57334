// SPDX-License-Identifier: BSL-1.0
// The subjects of auto_reset_event::async_wait.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/auto_reset_event.hpp>

namespace contract {

template <class Threading>
struct auto_reset_event_wait
    : subject_base<turnstile::basic_auto_reset_event<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_auto_reset_event<asio::any_io_executor, Threading>>;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
    bool try_op() { return this->object->try_wait(); }
    void grant() { this->object->set(); }
    std::size_t available() const { return this->object->is_set() ? 1 : 0; }
    void consume() {}
};

using auto_reset_event_subjects =
    std::tuple<auto_reset_event_wait<thread_safe>, auto_reset_event_wait<strand_confined>>;

} // namespace contract
