// SPDX-License-Identifier: BSL-1.0
// Waits on a condition that are cancelled while many others keep waiting.
#pragma once

#include "gates.hpp"

#include <turnstile/sync/condition.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace bench {

// n waits are cancelled: the first half while they are queued, the second half after they were
// notified and before they complete. The other waits are ahead of them in the queue; their
// predicates are tested and are false.
template <class Condition, class Mutex>
bool cancel_waits(std::size_t others, std::int64_t n)
{
    struct party {
        typename Mutex::lock_type lock;
        asio::cancellation_signal signal;
    };
    asio::io_context context;
    asio::io_context elsewhere; // is not run until all n waits are cancelled
    Mutex mutex(context);
    Condition condition(context);
    std::deque<party> parties(others + static_cast<std::size_t>(n));
    bool over = false;
    std::int64_t cancelled = 0;

    std::size_t next = 0;
    for (party& p : parties) {
        p.lock = typename Mutex::lock_type(mutex, std::try_to_lock);
        const auto done = [&](error_code ec) {
            cancelled += ec.failed() ? 1 : 0;
            p.lock.unlock();
        };
        if (next++ < others)
            condition.async_wait(
                p.lock, [&over] { return over; }, done);
        else
            condition.async_wait(
                p.lock, asio::bind_executor(elsewhere,
                                            asio::bind_cancellation_slot(p.signal.slot(), done)));
    }
    const std::size_t middle = others + static_cast<std::size_t>(n) / 2;
    for (std::size_t i = others; i != parties.size(); ++i) {
        if (i == middle) {
            condition.notify(parties.size() - static_cast<std::size_t>(n) / 2);
            context.poll();
        }
        parties[i].signal.emit(asio::cancellation_type::total);
    }
    elsewhere.run();
    over = true;
    condition.notify_all();
    context.restart();
    context.run();
    return cancelled == n;
}

} // namespace bench
