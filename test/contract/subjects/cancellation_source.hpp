// SPDX-License-Identifier: BSL-1.0
// The subjects of cancellation_source::async_wait.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/work/cancellation_source.hpp>

namespace contract {

template <class Threading>
struct cancellation_source_wait
    : subject_base<turnstile::basic_cancellation_source<asio::any_io_executor, Threading>> {
    using base =
        subject_base<turnstile::basic_cancellation_source<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
    bool try_op() { return this->object->is_cancelled(); }
    void grant() { this->object->cancel(); }
    std::size_t available() const { return this->object->is_cancelled() ? 1 : 0; }
    void consume() {}
};

using cancellation_source_subjects =
    std::tuple<cancellation_source_wait<thread_safe>, cancellation_source_wait<strand_confined>>;

} // namespace contract
