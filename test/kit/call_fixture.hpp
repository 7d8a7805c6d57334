// SPDX-License-Identifier: BSL-1.0
// A call of an object that runs an operation (a retry, a hedge, a timeout), on a manual clock.
#pragma once

#include "kit/completion.hpp"
#include "kit/manual_clock.hpp"
#include "kit/operations.hpp"
#include "kit/run.hpp"

#include <turnstile/core/clock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/test/unit_test.hpp>

#include <utility>

namespace kit {

struct call_fixture {
    call_fixture() { manual_clock::reset(); }

    void advance(turnstile::nanoseconds by) { manual_clock::advance(io, by); }
    void poll() { poll_leaves_work(io); }

    // call(operation, handler) must start the operation once, and complete nothing.
    template <class Call>
    void start_with(Call call)
    {
        call(operation, asio::bind_cancellation_slot(signal.slot(),
                                                     done.handler([this](int v) { value = v; })));
        BOOST_TEST(operation.started() == 1U);
        BOOST_TEST(!done.done());
        poll();
    }

    drained_context io;
    asio::cancellation_signal signal;
    scripted_operation operation{io.get_executor()};
    completion done;
    int value = 0;
};

} // namespace kit
