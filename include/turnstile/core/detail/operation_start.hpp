#pragma once

#include <turnstile/core/detail/handler_allocator.hpp>
#include <turnstile/core/detail/handler_executor.hpp>
#include <turnstile/core/detail/operation_result.hpp>
#include <turnstile/core/detail/wraps_handler.hpp>
#include <turnstile/core/operation.hpp>

#include <boost/asio/co_spawn.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// Where a coroutine with this type of executor runs if it is to run on `executor`: there, or
// if the type does not allow it, on what a strand is made from.
template <class CoroutineExecutor, class Executor>
CoroutineExecutor coroutine_executor(const Executor& executor)
{
    if constexpr (std::convertible_to<Executor, CoroutineExecutor>)
        return executor;
    else if constexpr (requires { executor.get_inner_executor(); })
        return coroutine_executor<CoroutineExecutor>(executor.get_inner_executor());
    else
        static_assert(std::convertible_to<Executor, CoroutineExecutor>,
                      "An operation that is a coroutine must have an executor type to which the "
                      "handler's executor converts; awaitable<T> goes with every executor.");
}

// Starts an operation with a handler. Throws what the operation throws; the handler is gone
// then. A coroutine runs on `executor`.
template <operation Op, class Executor, class Handler>
void initiate(Op op, const Executor& executor, Handler&& handler)
{
    if constexpr (coroutine_operation<Op>) {
        using runs_on = typename awaitable_traits<std::invoke_result_t<Op>>::executor_type;
        asio::co_spawn(coroutine_executor<runs_on>(executor), std::move(op),
                       std::forward<Handler>(handler));
    } else {
        static_cast<void>(std::move(op)(std::forward<Handler>(handler)));
    }
}

// A handler in a block of its own, so that it is still there if the initiation throws. The
// memory comes from the handler's allocator, and is free again when the handler is called.
template <class Handler>
class boxed_handler {
    struct block {
        explicit block(Handler&& h) : handler(std::move(h)) {}
        Handler handler;
        std::atomic<int> references{1};
    };

public:
    using wrapped_handler = Handler;
    using allocator_type = handler_allocator_t<std::byte, Handler>;

    explicit boxed_handler(Handler&& handler)
        : allocator_(handler_allocator<std::byte>(handler)),
          block_(make_in_memory_of<block>(
              handler, [&](void* memory) { return new (memory) block(std::move(handler)); }))
    {
    }
    boxed_handler(const boxed_handler& other) noexcept
        : allocator_(other.allocator_), block_(other.block_)
    {
        block_->references.fetch_add(1, std::memory_order_relaxed);
    }
    boxed_handler(boxed_handler&& other) noexcept
        : allocator_(other.allocator_), block_(std::exchange(other.block_, nullptr))
    {
    }
    boxed_handler& operator=(const boxed_handler&) = delete;
    ~boxed_handler() { release(); }

    template <class... Args>
    void operator()(Args&&... args)
    {
        Handler handler(take());
        std::move(handler)(std::forward<Args>(args)...);
    }

    const Handler& get() const noexcept { return block_->handler; }

    // Asio asks for it even after a move, if what it moved the handler into then throws.
    allocator_type get_allocator() const noexcept { return allocator_; }

    Handler take()
    {
        Handler handler(std::move(block_->handler));
        release();
        return handler;
    }

private:
    void release() noexcept
    {
        block* b = std::exchange(block_, nullptr);
        if (b && b->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            destroy_with(allocator_, b);
    }

    [[no_unique_address]] allocator_type allocator_;
    block* block_;
};

// Starts an operation. A coroutine runs on the handler's executor, by default `otherwise`.
// Whatever goes wrong while it is initiated is delivered to the handler like any other failure,
// posted there. It throws only if there is no memory to begin with, or if the signature has no
// place for a failure.
template <operation Op, class Executor, class Handler>
void start(Op op, const Executor& otherwise, Handler handler)
{
    using result = operation_result<Op>;
    const auto executor = executor_for(handler, otherwise);
    if constexpr (result::can_make_failure) {
        boxed_handler<Handler> boxed(std::move(handler));
        typename result::tuple failed;
        try {
            return initiate(std::move(op), executor, boxed_handler<Handler>(boxed));
        } catch (...) {
            failed = result::from_failure(std::current_exception());
        }
        post_handler(boxed.take(), executor, std::move(failed));
    } else {
        initiate(std::move(op), executor, std::move(handler));
    }
}

} // namespace turnstile::detail
