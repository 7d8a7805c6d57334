// SPDX-License-Identifier: BSL-1.0
// The route of a completion from the object to the handler's executor; each wait_operation has one.
// If the handler's executor is the object's own, which is the usual case, the route is a null
// pointer. Otherwise the handler is on a *foreign executor*, and the route owns a block with
// everything that only such a handler needs. doc/design.md, "Executors", lists the cases.
//
// Invariant: while a route has a block, the state exists and the foreign executor has outstanding
// work.
#pragma once

#include <turnstile/detail/post/erased_task.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/post/outstanding_work.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The handler and the result of an operation that has ended on the object's executor, on their way
// to a foreign executor. The result is the last member, because it must be destroyed before the
// handler, which may own the object.
template <class Memory, class Handler, class Result>
struct detached_completion {
    Memory memory;
    Handler handler;
    Result result;

    void deliver() { memory.complete(std::move(handler), std::move(result)); }
};
// For a threading policy whose operations go to the foreign executor themselves.
struct no_completion {};

// The template does not depend on the operation, so that many operations share its code.
template <class HandlerExecutor, class Threading, class Allocator, class Completion>
class handler_route {
public:
    // Members that must exist until the handler has run, which is after the operation has ended.
    struct lifetime_guard {
        wait_state_ptr<Threading> state; // may be the last reference
        executor_work<HandlerExecutor> work;
    };
    struct foreign_block {
        lifetime_guard guard;
        Allocator allocator;
        std::optional<foreign_post> post;
        std::optional<Completion> completion;
    };
    using foreign_block_ptr = std::unique_ptr<foreign_block, block_deleter>;

    bool is_foreign() const noexcept { return static_cast<bool>(block_); }

    // Whether the completion is posted to the object's executor, and dispatched from there.
    bool needs_dispatch() const noexcept { return block_ && !block_->post; }

    // Chooses the route. Returns the post to the foreign executor, or null if the completion is
    // posted to the object's executor.
    TURNSTILE_HOT foreign_post* choose(const HandlerExecutor& executor,
                                       wait_state<Threading>& state, waiter& w,
                                       const Allocator& allocator)
    {
        if constexpr (postable_executor<HandlerExecutor>) {
            if (state.object_executor().is(executor)) [[likely]]
                return nullptr;
        }
        return choose_foreign(executor, state, w, allocator);
    }

    // The functions below are only for a foreign executor.

    // Takes the block out of the operation, whose memory is about to be freed.
    foreign_block_ptr take_block() noexcept { return std::move(block_); }

    // Dispatches the operation itself, which may be destroyed when this function returns.
    void dispatch(void* operation, erased_task::run_function run_foreign) const
    {
        dispatch_task(block_->guard.work.get_executor(), Allocator(block_->allocator),
                      erased_task(operation, run_foreign));
    }
    // Dispatches the handler and the result of an operation that has ended.
    TURNSTILE_COLD static void dispatch(foreign_block_ptr block, Completion&& ended)
    {
        // Stays here: only this thread may drop a reference to a confined state.
        const auto guard = std::move(block->guard);
        const Allocator allocator(block->allocator);
        block->completion.emplace(std::move(ended));
        dispatch_task(guard.work.get_executor(), allocator,
                      erased_task(block.release(), &run_completion));
    }

private:
    static void run_completion(void* p, task_action action)
    {
        foreign_block_ptr block(static_cast<foreign_block*>(p));
        Completion completion = std::move(*block->completion);
        block.reset();
        if (action == task_action::invoke)
            completion.deliver();
    }

    TURNSTILE_COLD foreign_post* choose_foreign(const HandlerExecutor& executor,
                                                wait_state<Threading>& state,
                                                [[maybe_unused]] waiter& w,
                                                const Allocator& allocator)
    {
        block_.reset(make_with<foreign_block>(allocator, [&](void* memory) {
            return new (memory) foreign_block{
                {wait_state_ptr<Threading>(&state), executor_work<HandlerExecutor>(executor)},
                allocator,
                {},
                {}};
        }));
        if constexpr (postable_executor<HandlerExecutor> && !Threading::is_confined) {
            if (!is_system_executor(executor))
                return &block_->post.emplace(posting_executor(executor), w);
        }
        return nullptr;
    }

    foreign_block_ptr block_;
};

} // namespace turnstile::inline v0_1::detail
