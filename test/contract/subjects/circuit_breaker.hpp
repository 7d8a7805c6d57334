// SPDX-License-Identifier: BSL-1.0
// The wait for a state of a circuit breaker.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/resilience/circuit_breaker.hpp>

#include <tuple>

namespace contract {

template <class Threading>
struct circuit_wait
    : subject_base<turnstile::basic_circuit_breaker<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_circuit_breaker<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;
    static constexpr auto wanted = turnstile::circuit_state::open;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait_state(wanted, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait_state(wanted); }
    bool try_op() { return this->object->state() == wanted; }
    void grant() { this->object->force_open(); }
    std::size_t available() const { return this->object->state() == wanted ? 1 : 0; }
    void consume() {}
};

using circuit_breaker_subjects =
    std::tuple<circuit_wait<thread_safe>, circuit_wait<strand_confined>>;

} // namespace contract
