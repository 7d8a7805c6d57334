// SPDX-License-Identifier: BSL-1.0
// One asynchronous wait: a waiter with its completion handler, its request, and the route to the
// handler's executor. start_wait() makes it and hands it over to the state of the object. The
// parameter Memory says where the operation is stored, and how its outcome reaches the handler:
// handler_memory for any handler, operation_frame::memory for a coroutine; see start_wait.hpp.
//
// Invariants: once started, the operation owns itself, and ends exactly once: complete() calls the
// handler, drop() destroys it. Before the handler is called, the memory of the operation is freed,
// and the state is not used after that, because the handler may reuse the memory or destroy the
// object.
#pragma once

#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/post/handler_route.hpp>
#include <turnstile/detail/wait/wait_cancellation.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/asio/associated_executor.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

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
        request_.state().start(*this); // not state_->start(): some states hide it with their own
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
