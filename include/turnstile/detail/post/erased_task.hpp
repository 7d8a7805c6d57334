// SPDX-License-Identifier: BSL-1.0
// A function object without its type: a pointer to a block, and a function that runs or destroys
// the block. Operations and handlers are posted and dispatched to executors as an erased_task, so
// Asio's post and dispatch are compiled once for each executor, not for each handler.
//
// Invariant: the block is run or destroyed exactly once. An executor that drops the task destroys
// the block.
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

class erased_task {
public:
    using run_function = void (*)(void* block, task_action);

    erased_task(void* block, run_function run) noexcept : block_(block), run_(run) {}
    erased_task(erased_task&& other) noexcept
        : block_(std::exchange(other.block_, nullptr)), run_(other.run_)
    {
    }
    erased_task& operator=(erased_task&&) = delete;
    ~erased_task()
    {
        if (block_)
            run_(block_, task_action::destroy);
    }

    void operator()() { run_(std::exchange(block_, nullptr), task_action::invoke); }

private:
    void* block_;
    run_function run_;
};

template <class Executor, class Allocator>
void dispatch_task(const Executor& executor, const Allocator& allocator, erased_task task)
{
    asio::dispatch(executor, asio::bind_allocator(allocator, std::move(task)));
}

template <class Executor, class Allocator>
void post_task(const Executor& executor, const Allocator& allocator, erased_task task)
{
    asio::post(executor, asio::bind_allocator(allocator, std::move(task)));
}

// Makes a task of a handler and its arguments, in memory of the handler's allocator. The memory is
// freed before the task calls Call()(handler, arguments).
template <class Call, class Handler, class Arguments>
erased_task make_task(Handler handler, Arguments arguments)
{
    struct block {
        Handler handler;
        Arguments arguments;
        handler_allocator_t<std::byte, Handler> allocator;

        static void run(void* p, task_action action)
        {
            auto* const self = static_cast<block*>(p);
            Handler h(std::move(self->handler)); // destroyed last: it may own the memory
            std::unique_ptr<block, block_deleter> owner(self);
            if (action == task_action::destroy)
                return;
            Arguments a(std::move(self->arguments));
            owner.reset();
            Call()(std::move(h), std::move(a));
        }
    };
    const auto make = [&, allocator = handler_allocator<std::byte>(handler)](void* memory) {
        return new (memory) block{std::move(handler), std::move(arguments), allocator};
    };
    return erased_task(make_in_memory_of<block>(handler, make), &block::run);
}

} // namespace turnstile::inline v0_1::detail
