// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/post/erased_task.hpp>
#include <turnstile/detail/post/executor_work.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// What is left of an operation that ends on the object's executor, and goes on to the handler's.
// The result is last: it goes before the handler, which may own the object.
template <class Memory, class Handler, class Result>
struct detached_completion {
    Memory memory;
    Handler handler;
    Result result;

    void deliver() { memory.complete(std::move(handler), std::move(result)); }
};
// Where the operation itself goes there.
struct no_completion {};

// Where a handler's completion is posted. Nearly always that is the object's own executor,
// and then this is a null pointer. It knows nothing of the operation but its cargo, so that it is
// compiled once for many of them.
template <class HandlerExecutor, class Threading, class Allocator, class Completion>
class handler_route {
public:
    // What must outlive the operation, until its handler has run.
    struct kept_alive {
        wait_state_ptr<Threading> state; // nobody else may have one by the time it arrives
        executor_work<HandlerExecutor> work;
    };
    // What only a handler elsewhere needs stays out of everybody's way.
    struct foreign {
        kept_alive held;
        Allocator allocator;
        std::optional<foreign_post> way;
        std::optional<Completion> completion;
    };
    using foreign_ptr = std::unique_ptr<foreign, in_own_memory>;

    bool is_home() const noexcept { return !foreign_; }

    // Whether the completion is posted to the object's executor, and dispatched from there.
    bool needs_dispatch() const noexcept { return foreign_ && !foreign_->way; }

    // The way to the handler's executor, or null if it is the object's own.
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

    // All below only if the handler's executor is not the object's own. What is left of the route
    // when the operation's memory is freed:
    foreign_ptr leave() noexcept { return std::move(foreign_); }

    // The operation goes on, and may be gone when this returns.
    void dispatch(void* operation, erased_task::run_function run_foreign) const
    {
        dispatch_task(foreign_->held.work.get_executor(), Allocator(foreign_->allocator),
                      erased_task(operation, run_foreign));
    }
    // It has ended, and only its cargo goes on.
    TURNSTILE_COLD static void dispatch(foreign_ptr route, Completion&& ended)
    {
        const auto stays_here = std::move(route->held);
        const Allocator allocator(route->allocator);
        route->completion.emplace(std::move(ended));
        dispatch_task(stays_here.work.get_executor(), allocator,
                      erased_task(route.release(), &run_completion));
    }

private:
    static void run_completion(void* what, task_action action)
    {
        foreign_ptr arrived(static_cast<foreign*>(what));
        Completion completion = std::move(*arrived->completion);
        arrived.reset();
        if (action == task_action::invoke)
            completion.deliver();
    }

    TURNSTILE_COLD foreign_post* choose_foreign(const HandlerExecutor& executor,
                                                wait_state<Threading>& state,
                                                [[maybe_unused]] waiter& w,
                                                const Allocator& allocator)
    {
        foreign_.reset(make_with<foreign>(allocator, [&](void* memory) {
            return new (memory) foreign{
                {wait_state_ptr<Threading>(&state), executor_work<HandlerExecutor>(executor)},
                allocator,
                {},
                {}};
        }));
        if constexpr (postable_executor<HandlerExecutor> && !Threading::is_confined) {
            if (!is_system_executor(executor))
                return &foreign_->way.emplace(posting_executor(executor), w);
        }
        return nullptr;
    }

    foreign_ptr foreign_;
};

} // namespace turnstile::inline v0_1::detail
