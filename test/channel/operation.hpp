// SPDX-License-Identifier: BSL-1.0
// Cancellable operations of queues with their results. Few handler types, so that the tests compile
// fast.
#pragma once

#include <turnstile/channel/priority_queue.hpp>
#include <turnstile/channel/queue.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace channels {

namespace asio = boost::asio;
using turnstile::close_mode;
using turnstile::errc;
using turnstile::error_code;
using turnstile::overflow;
using turnstile::queue_order;
using turnstile::system_error;

template <class Threading>
using queue_of = turnstile::basic_queue<int, asio::any_io_executor, Threading>;
using numbers = std::vector<int>;

struct operation {
    asio::cancellation_signal signal;
    bool done = false;
    error_code error;
    numbers values;
    turnstile::queue_item_id item;

    bool succeeded() const { return done && !error; }
    bool aborted() const { return done && error == asio::error::operation_aborted; }
    bool failed_with(errc code) const { return done && error == code; }
    void cancel() { signal.emit(asio::cancellation_type::total); }

    auto ended()
    {
        return asio::bind_cancellation_slot(signal.slot(),
                                            std::function<void(error_code)>([this](error_code ec) {
                                                done = true;
                                                error = ec;
                                            }));
    }
    auto pushed()
    {
        return asio::bind_cancellation_slot(
            signal.slot(), std::function<void(error_code, turnstile::queue_item_id)>(
                               [this](error_code ec, turnstile::queue_item_id handle) {
                                   done = true;
                                   error = ec;
                                   item = handle;
                               }));
    }
    auto popped()
    {
        return asio::bind_cancellation_slot(
            signal.slot(), std::function<void(error_code, int)>([this](error_code ec, int value) {
                done = true;
                error = ec;
                if (!ec)
                    values.push_back(value);
            }));
    }
    auto popped_some()
    {
        return asio::bind_cancellation_slot(signal.slot(), std::function<void(error_code, numbers)>(
                                                               [this](error_code ec, numbers all) {
                                                                   done = true;
                                                                   error = ec;
                                                                   values = std::move(all);
                                                               }));
    }
};

template <class Queue>
numbers drain(Queue& q)
{
    numbers all;
    while (auto item = q.try_pop())
        all.push_back(*item);
    return all;
}

template <class Queue>
void fill(Queue& q, numbers values)
{
    for (int value : values)
        BOOST_TEST_REQUIRE(q.try_push(value));
}

} // namespace channels
