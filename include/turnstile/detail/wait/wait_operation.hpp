// SPDX-License-Identifier: BSL-1.0
// One asynchronous wait: a waiter with its completion handler, its request, and the route to the
// handler's executor. start_wait() makes it and hands it over to the state of the object. The
// parameter Memory says where the operation is stored, and how its outcome reaches the handler:
// handler_memory for any handler, operation_frame::memory for a coroutine; see start_wait.hpp.
//
// The file also has the two parts of an operation: wait_cancellation, the handler in its
// cancellation slot, and handler_route, the route of its completion to a foreign executor.
//
// Invariants: once started, the operation owns itself, and ends exactly once: complete() calls the
// handler, drop() destroys it. Before the handler is called, the memory of the operation is freed,
// and the state is not used after that, because the handler may reuse the memory or destroy the
// object.
#pragma once

#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/system_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The cancellation handler in the slot of a wait. wait_operation::start() puts it there, and the
// slot is not accessed again after that, in particular not by a thread that grants the waiter.
//
// Invariant: the handler and its waiter point to each other while both exist; the one that is
// destroyed first ends the link, under the object's lock. So a signal that is emitted after the
// completion finds no waiter and has no effect. The handler holds a reference to the state.
template <class Threading>
class wait_cancellation : cancel_link {
public:
    wait_cancellation(wait_state_ptr<Threading> state, waiter& w) noexcept
        : state_(std::move(state))
    {
        target = &w;
        w.cancellation = this;
        w.is_cancellable = true;
    }
    wait_cancellation(const wait_cancellation&) = delete;
    wait_cancellation& operator=(const wait_cancellation&) = delete;
    ~wait_cancellation() { state_->unlink(*this); }

    void operator()(asio::cancellation_type_t type)
    {
        if ((type & asio::cancellation_type::all) != asio::cancellation_type::none)
            state_->cancel(*this);
    }

private:
    wait_state_ptr<Threading> state_;
};

template <class Threading, class Slot>
TURNSTILE_NOINLINE void make_wait_cancellation(Slot& slot, wait_state<Threading>& state, waiter& w)
{
    slot.template emplace<wait_cancellation<Threading>>(wait_state_ptr<Threading>(&state), w);
}

template <class Threading, class Handler>
TURNSTILE_HOT void arm_cancellation(const Handler& handler, wait_state<Threading>& state, waiter& w)
{
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        make_wait_cancellation(slot, state, w);
}

// The route of a completion from the object to the handler's executor; each wait_operation has one.
// If the handler's executor is the object's own, which is the usual case, the route is a null
// pointer. Otherwise the handler is on a *foreign executor*, and the route owns a block with
// everything that only such a handler needs. doc/design.md, "Executors", lists the cases.
//
// Invariant: while a route has a block, the state exists and the foreign executor has outstanding
// work.

// The handler and the result of an operation that has ended on the object's executor, while they
// are dispatched to a foreign executor. The result is the last member, because it must be destroyed
// before the handler, which may own the object.
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
        if constexpr (postable_executor<HandlerExecutor>) {
            // A strand of the work layer on top of the object's executor belongs to its strand.
            const bool may_end_there = Threading::is_confined
                                           ? state.object_executor().is_inner_of(executor)
                                           : !is_system_executor(executor);
            if (may_end_there)
                return &block_->post.emplace(posting_executor(executor), w);
        }
        return nullptr;
    }

    foreign_block_ptr block_;
};

template <class Request, class Handler, class Memory>
class wait_operation final : public Request::waiter_type {
    using threading = typename Request::threading;
    using handler_executor = asio::associated_executor_t<Handler, typename Request::executor_type>;

    using outcome_type = typename Memory::template outcome_type<Request>;
    using completion_type =
        std::conditional_t<threading::is_confined,
                           detached_completion<Memory, Handler, outcome_type>, no_completion>;
    using route = handler_route<handler_executor, threading,
                                handler_allocator_t<std::byte, Handler>, completion_type>;

public:
    template <class H>
    static wait_operation* make(Request& request, H&& handler, const Memory& memory)
    {
        return make_with<wait_operation>(memory.allocator_for(handler), [&](void* p) {
            return new (p) wait_operation(request, std::forward<H>(handler), memory);
        });
    }

    ~wait_operation() = default; // only for destroy_with(); all other code calls destroy()

    // Hands the operation over to the state; the operation then owns itself. The caller keeps the
    // object, and thereby the state, during the call.
    void start()
    {
        try {
            arm_cancellation(handler_, *state_, *this);
        } catch (...) {
            this->destroy();
            throw;
        }
        request_.state().start(*this); // of the derived type: usually not a virtual call
    }

private:
    template <class H>
    wait_operation(Request& request, H&& handler, const Memory& memory)
        // The handler is moved last: if a step before fails, the members that are destroyed may be
        // in the frame of the coroutine that the handler owns.
        : Request::waiter_type(&wait_operation::run), request_(std::move(request)), memory_(memory),
          state_(&request_.state()), handler_(prepare(request, std::forward<H>(handler)))
    {
    }
    // Chooses the route, and writes the need into the waiter. If a step fails, moves the request
    // back to the caller, which may have to undo a granted try_now().
    template <class H>
    Handler prepare(Request& origin, H&& handler)
    {
        try {
            this->foreign =
                route_.choose(asio::get_associated_executor(handler, request_.executor()), *state_,
                              *this, handler_allocator<std::byte>(handler));
            request_.prepare(*this);
            return Handler(std::forward<H>(handler));
        } catch (...) {
            std::destroy_at(&origin);
            std::construct_at(&origin, std::move(request_));
            throw;
        }
    }
    static void run(waiter& w, task_action action)
    {
        auto& self = static_cast<wait_operation&>(w);
        if (action == task_action::destroy)
            self.drop();
        else if (!self.route_.needs_dispatch()) [[likely]]
            self.complete();
        else
            self.dispatch_to_handler();
    }

    TURNSTILE_HOT void complete()
    {
        outcome_type outcome = take_outcome();
        if (route_.is_foreign()) [[unlikely]]
            return call_foreign(std::move(outcome));
        call(std::move(outcome));
    }

    // A refused waiter may have a retry_after, which the handler of a call that waits for a permit
    // stores.
    TURNSTILE_HOT outcome_type take_outcome()
    {
        const bool granted = state_->confirm_grant(*this);
        if constexpr (requires { handler_.note_retry_after(this->retry_after); })
            handler_.note_retry_after(this->retry_after);
        return memory_.take_outcome(request_, *this, granted);
    }

    void call(outcome_type&& outcome)
    {
        const Memory memory = memory_;
        Handler handler = release_handler();
        // Destroyed before the handler, which may own the object.
        outcome_type taken = std::move(outcome);
        memory.complete(std::move(handler), std::move(taken));
    }

    // Keeps the state, and the handler's context running, until the handler has returned.
    TURNSTILE_COLD void call_foreign(outcome_type&& outcome)
    {
        const auto guard = std::move(route_.take_block()->guard);
        call(std::move(outcome));
    }

    // Called on the object's executor; the handler runs on a foreign one.
    TURNSTILE_COLD void dispatch_to_handler()
    {
        if constexpr (threading::is_confined) {
            // The foreign executor must not use the state, so the operation ends here.
            outcome_type outcome = take_outcome();
            auto block = route_.take_block();
            const Memory memory = memory_;
            route::dispatch(std::move(block), {memory, release_handler(), std::move(outcome)});
        } else {
            // The operation ends on the foreign executor, and can be cancelled until then.
            route_.dispatch(this, &wait_operation::run_foreign);
        }
    }
    static void run_foreign(void* operation, task_action action)
    {
        auto& self = *static_cast<wait_operation*>(operation);
        if (action == task_action::invoke)
            self.complete();
        else
            self.destroy();
    }

    void drop()
    {
        const wait_state_ptr<threading> keep_alive(state_); // the route may have the last reference
        state_->drop(*this);
        [[maybe_unused]] const Handler handler = release_handler();
    }

    // Destroys the operation and frees its memory, also if moving the handler throws.
    Handler release_handler() noexcept(std::is_nothrow_move_constructible_v<Handler>)
    {
        const auto allocator = memory_.allocator_for(handler_);
        const memory_release<std::decay_t<decltype(allocator)>> release{allocator, this};
        return Handler(std::move(handler_));
    }
    template <class Allocator>
    struct memory_release {
        const Allocator& allocator;
        wait_operation* operation;
        ~memory_release() { destroy_with(allocator, operation); }
    };

    Request request_;
    [[no_unique_address]] Memory memory_;
    wait_state<threading>* state_; // the caller of run(), or the route, holds a reference
    route route_;
    Handler handler_;
};

} // namespace turnstile::inline v0_1::detail
