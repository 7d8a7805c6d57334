// SPDX-License-Identifier: BSL-1.0
// Tasks, which executors run, and the memory they are queued in. An intrusive_task brings the
// memory of its queue entry along, so that a wake-up neither allocates nor fails; an erased_task
// hides the type of a handler from the executor, so that Asio's dispatch is compiled once for each
// executor.
//
// Invariant: a task is invoked or destroyed, exactly once.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// An allocator with one buffer of Size bytes, which its user owns. It makes an allocation that must
// not fail: an intrusive_task is queued in a buffer of its own, the wait of a coroutine lives in
// the coroutine's frame, and the handler of a timer in the state. A request that does not fit goes
// to the heap.
//
// An executor is passed a buffer_allocator<void, Size>, which it rebinds.
//
// Invariant: at most one allocation is in the buffer at a time; the user sees to that.
template <class T, std::size_t Size>
class buffer_allocator {
public:
    using value_type = T;
    template <class U>
    struct rebind {
        using other = buffer_allocator<U, Size>;
    };

    explicit buffer_allocator(void* buffer) noexcept : buffer_(buffer) {}
    template <class U>
    buffer_allocator(const buffer_allocator<U, Size>& other) noexcept : buffer_(other.buffer())
    {
    }

    T* allocate(std::size_t n)
    {
        if (fits(n))
            return static_cast<T*>(buffer_);
        return std::allocator<T>().allocate(n);
    }

    void deallocate(T* p, std::size_t n) noexcept
    {
        if (!fits(n))
            std::allocator<T>().deallocate(p, n);
    }

    void* buffer() const noexcept { return buffer_; }

    template <class U>
    bool operator==(const buffer_allocator<U, Size>& other) const noexcept
    {
        return buffer_ == other.buffer();
    }

private:
    static constexpr bool fits(std::size_t n) noexcept
    {
        return n == 1 && sizeof(T) <= Size && alignof(T) <= alignof(std::max_align_t);
    }

    void* buffer_;
};

// Memory for blocks that contain a completion handler, such as a wait_operation. It comes from the
// handler's associated allocator, or from Asio's recycling allocator if the handler has none.
//
// Invariant: a block is freed with the allocator it was made with. The allocator is queried from
// the handler before the handler is moved out of the block.
template <class T, class Handler>
using handler_allocator_t = typename std::allocator_traits<boost::asio::associated_allocator_t<
    Handler, boost::asio::recycling_allocator<void>>>::template rebind_alloc<T>;

template <class T, class Handler>
handler_allocator_t<T, Handler> handler_allocator(const Handler& handler) noexcept
{
    return handler_allocator_t<T, Handler>(
        boost::asio::get_associated_allocator(handler, boost::asio::recycling_allocator<void>()));
}

// Returns make(memory), which constructs a T in memory of the allocator.
template <class T, class Allocator, class Make>
T* make_with(const Allocator& allocator, Make&& make)
{
    using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
    rebound memory(allocator);
    T* p = std::allocator_traits<rebound>::allocate(memory, 1);
    try {
        return make(static_cast<void*>(p));
    } catch (...) {
        std::allocator_traits<rebound>::deallocate(memory, p, 1);
        throw;
    }
}

// The same with the allocator of a handler, which make() may move into the T.
template <class T, class Handler, class Make>
T* make_in_memory_of(const Handler& handler, Make&& make)
{
    return make_with<T>(handler_allocator<T>(handler), std::forward<Make>(make));
}

// Destroys a T that make_with() has made, and frees its memory.
template <class T, class Allocator>
void destroy_with(const Allocator& allocator, T* p) noexcept
{
    using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
    rebound memory(allocator);
    std::destroy_at(p);
    std::allocator_traits<rebound>::deallocate(memory, p, 1);
}

// The deleter of a block that contains the allocator of its own memory.
struct block_deleter {
    template <class Block>
    void operator()(Block* block) const noexcept
    {
        const auto allocator = block->allocator;
        destroy_with(allocator, block);
    }
};

// The action at the end of a queued task: run it, or destroy it without running it.
enum class task_action { invoke, destroy };

// A task that can be posted without allocating memory: it contains the memory in which the executor
// queues it, so a wake-up neither allocates nor fails. posting_executor posts it. The drain of an
// object, the post to a foreign executor and the retry of a timer are such tasks.
//
// Invariant: each successful post ends with exactly one call of run_function, either to invoke the
// task or, if the executor drops it, to destroy it.
class intrusive_task {
public:
    using run_function = void (*)(intrusive_task&, task_action);

    // Large enough for the queue entry of an io_context or a thread_pool, and just large enough
    // with Asio's handler tracking. A larger entry would go to the heap, which the tests detect.
    static constexpr std::size_t memory_size = 48;

    explicit intrusive_task(run_function run) noexcept : run_(run) {}
    intrusive_task(const intrusive_task&) = delete;
    intrusive_task& operator=(const intrusive_task&) = delete;

    void invoke() { run_(*this, task_action::invoke); }
    void destroy() { run_(*this, task_action::destroy); }
    void* memory() noexcept { return memory_; }

protected:
    ~intrusive_task() = default;

private:
    alignas(std::max_align_t) std::byte memory_[memory_size];
    run_function run_;
};

// A function object without its type: a pointer to a block, and a function that runs or destroys
// the block. Operations and handlers are posted and dispatched to executors as an erased_task, so
// Asio's post and dispatch are compiled once for each executor, not for each handler.
//
// Invariant: the block is run or destroyed exactly once. An executor that drops the task destroys
// the block.
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
