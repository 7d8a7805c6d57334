// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/post/intrusive_task.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace turnstile::detail {

// Something on its way from one executor to another. It does not know its type, so that a
// dispatch is compiled for each executor, and not for each handler or operation.
class hop {
public:
    // What is done there with what was sent; or it is destroyed, if it never arrives.
    using land_function = void (*)(void*, how);

    hop(void* what, land_function land) noexcept : what_(what), land_(land) {}
    hop(hop&& other) noexcept : what_(std::exchange(other.what_, nullptr)), land_(other.land_) {}
    hop& operator=(hop&&) = delete;
    ~hop()
    {
        if (what_)
            land_(what_, how::destroy);
    }

    void operator()() { land_(std::exchange(what_, nullptr), how::invoke); }

private:
    void* what_;
    land_function land_;
};

template <class Executor, class Allocator>
void dispatch_hop(const Executor& executor, const Allocator& allocator, hop h)
{
    asio::dispatch(executor, asio::bind_allocator(allocator, std::move(h)));
}

template <class Executor, class Allocator>
void post_hop(const Executor& executor, const Allocator& allocator, hop h)
{
    asio::post(executor, asio::bind_allocator(allocator, std::move(h)));
}

// A handler with what it is to be called with, as a hop: in memory from the handler's allocator,
// which is free again before Call()(handler, arguments).
template <class Call, class Handler, class Arguments>
hop make_hop(Handler handler, Arguments arguments)
{
    struct block {
        Handler handler;
        Arguments arguments;
        handler_allocator_t<std::byte, Handler> allocator;

        static void land(void* what, how then)
        {
            auto* const self = static_cast<block*>(what);
            Handler h(std::move(self->handler)); // last to go: it may own the memory
            std::unique_ptr<block, in_own_memory> arrived(self);
            if (then == how::destroy)
                return;
            Arguments a(std::move(self->arguments));
            arrived.reset();
            Call()(std::move(h), std::move(a));
        }
    };
    const auto make = [&, allocator = handler_allocator<std::byte>(handler)](void* memory) {
        return new (memory) block{std::move(handler), std::move(arguments), allocator};
    };
    return hop(make_in_memory_of<block>(handler, make), &block::land);
}

} // namespace turnstile::detail
