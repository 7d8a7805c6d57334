// SPDX-License-Identifier: BSL-1.0
// Destroys an execution context on another thread than the one that ran it.
#pragma once

#include "kit/joining_thread.hpp"

#include <turnstile/sync/event.hpp>

#include <boost/asio.hpp>

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace kit {

// `make(context)` runs inside the context, and returns the object that the handler of a wait owns.
// The context is destroyed while the wait is pending and the thread that ran the context still
// exists.
template <class Make>
void destroy_with_abandoned_context(Make make)
{
    namespace asio = boost::asio;
    std::optional<asio::io_context> io(std::in_place);
    std::promise<void> polled;
    std::promise<void> destroyed;
    joining_thread runner([&] {
        asio::post(*io, [&] {
            const auto never = std::make_shared<turnstile::local::event>(*io);
            never->async_wait(
                [never, owned = make(*io)](const boost::system::error_code&) mutable {});
        });
        io->poll();
        polled.set_value();
        destroyed.get_future().wait();
    });
    polled.get_future().wait();
    io.reset();
    destroyed.set_value();
}

} // namespace kit
