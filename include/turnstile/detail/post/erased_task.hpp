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

namespace turnstile::inline v0_1::detail {

// Something on its way from one executor to another. It does not know its type, so that a
// dispatch is compiled for each executor, and not for each handler or operation.
class erased_task {
public:
    // What is done there with what was sent; or it is destroyed, if it never arrives.
    using run_function = void (*)(void*, task_action);

    erased_task(void* what, run_function run) noexcept : object_(what), run_(run) {}
    erased_task(erased_task&& other) noexcept
        : object_(std::exchange(other.object_, nullptr)), run_(other.run_)
    {
    }
    erased_task& operator=(erased_task&&) = delete;
    ~erased_task()
    {
        if (object_)
            run_(object_, task_action::destroy);
    }

    void operator()() { run_(std::exchange(object_, nullptr), task_action::invoke); }

private:
    void* object_;
    run_function run_;
};

template <class Executor, class Allocator>
void dispatch_task(const Executor& executor, const Allocator& allocator, erased_task h)
{
    asio::dispatch(executor, asio::bind_allocator(allocator, std::move(h)));
}

template <class Executor, class Allocator>
void post_task(const Executor& executor, const Allocator& allocator, erased_task h)
{
    asio::post(executor, asio::bind_allocator(allocator, std::move(h)));
}

// A handler with what it is to be called with, as a hop: in memory from the handler's allocator,
// which is free again before Call()(handler, arguments).
template <class Call, class Handler, class Arguments>
erased_task make_task(Handler handler, Arguments arguments)
{
    struct block {
        Handler handler;
        Arguments arguments;
        handler_allocator_t<std::byte, Handler> allocator;

        static void run(void* what, task_action action)
        {
            auto* const self = static_cast<block*>(what);
            Handler h(std::move(self->handler)); // last to go: it may own the memory
            std::unique_ptr<block, in_own_memory> arrived(self);
            if (action == task_action::destroy)
                return;
            Arguments a(std::move(self->arguments));
            arrived.reset();
            Call()(std::move(h), std::move(a));
        }
    };
    const auto make = [&, allocator = handler_allocator<std::byte>(handler)](void* memory) {
        return new (memory) block{std::move(handler), std::move(arguments), allocator};
    };
    return erased_task(make_in_memory_of<block>(handler, make), &block::run);
}

} // namespace turnstile::inline v0_1::detail
