// SPDX-License-Identifier: BSL-1.0
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

// A waiter with its handler. Ask says what is waited for, Memory where the operation lives
// and how the handler takes its result; see start_wait.hpp.
template <class Request, class Handler, class Memory>
class wait_operation final : public Request::waiter_type {
    using threading = typename Request::threading;
    using handler_executor = asio::associated_executor_t<Handler, typename Request::executor_type>;

    using collected = typename Memory::template collected<Request>;
    using completion_type =
        std::conditional_t<threading::is_confined, detached_completion<Memory, Handler, collected>,
                           no_completion>;
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

    ~wait_operation() = default; // for the memory it is in; everybody else calls destroy()

    // Hands the operation over to the object's queue; from here on it owns itself. The
    // object, which is the caller's, keeps the state alive for the call.
    void start()
    {
        try {
            arm_cancellation(handler_, *state_, *this);
        } catch (...) {
            this->destroy();
            throw;
        }
        request_.state().start(*this); // some states have a start() of their own
    }

private:
    template <class H>
    wait_operation(Request& request, H&& handler, const Memory& memory)
        // The Ask may carry a value, which the operation now owns. The handler is last: if
        // anything fails before, what is unwound may be in the frame of the coroutine it is.
        : Request::waiter_type(&wait_operation::run), request_(std::move(request)), memory_(memory),
          state_(&request_.state()), handler_(get_ready(request, std::forward<H>(handler)))
    {
    }
    // If that fails, the caller has its Ask again, to undo what it was granted.
    template <class H>
    Handler get_ready(Request& origin, H&& handler)
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
            self.discard();
        else if (!self.route_.needs_dispatch()) [[likely]]
            self.complete();
        else
            self.leave_object_executor();
    }

    // Ends the operation, and calls its handler. Everything is freed before the handler runs:
    // it may reuse the memory, or destroy the object.
    TURNSTILE_HOT void complete()
    {
        collected result = collect();
        if (!route_.is_home()) [[unlikely]]
            return call_foreign(std::move(result));
        call(std::move(result));
    }

    // The outcome of the wait. A refused waiter may know when to try again, which a call that
    // waits for a permit passes on.
    TURNSTILE_HOT collected collect()
    {
        const bool granted = state_->confirm_grant(*this);
        if constexpr (requires { handler_.note_retry_after(this->retry_after); })
            handler_.note_retry_after(this->retry_after);
        return memory_.collect(request_, *this, granted);
    }

    void call(collected&& result)
    {
        const Memory memory = memory_;
        Handler handler = release_handler();
        collected taken = std::move(result); // goes before the handler, which may own the object
        memory.complete(std::move(handler), std::move(taken));
    }

    // The handler's context is kept running meanwhile.
    TURNSTILE_COLD void call_foreign(collected&& result)
    {
        const auto held = std::move(route_.leave()->held);
        call(std::move(result));
    }

    // From the object's executor to the handler's.
    TURNSTILE_COLD void leave_object_executor()
    {
        if constexpr (threading::is_confined) {
            // The state must not be touched there, so the operation ends here.
            collected result = collect();
            auto taken_route = route_.leave();
            const Memory memory = memory_;
            route::dispatch(std::move(taken_route), {memory, release_handler(), std::move(result)});
        } else {
            // It may still be cancelled there.
            route_.dispatch(this, &wait_operation::run_foreign);
        }
    }
    static void run_foreign(void* what, task_action action)
    {
        auto& self = *static_cast<wait_operation*>(what);
        if (action == task_action::invoke)
            self.complete();
        else
            self.destroy();
    }

    void discard()
    {
        const wait_state_ptr<threading> keep_alive(state_); // the route may have held the last
        state_->drop(*this);
        [[maybe_unused]] const Handler handler = release_handler();
    }

    // Ends the operation and frees its memory, also if the handler throws when it is moved.
    Handler release_handler() noexcept(std::is_nothrow_move_constructible_v<Handler>)
    {
        const auto allocator = memory_.allocator_for(handler_);
        const ending<std::decay_t<decltype(allocator)>> end{allocator, this};
        return Handler(std::move(handler_));
    }
    template <class Allocator>
    struct ending {
        const Allocator& allocator;
        wait_operation* operation;
        ~ending() { destroy_with(allocator, operation); }
    };

    Request request_;
    [[no_unique_address]] Memory memory_;
    wait_state<threading>* state_; // kept alive by whoever runs this, or by the route
    route route_;
    Handler handler_;
};

} // namespace turnstile::inline v0_1::detail
