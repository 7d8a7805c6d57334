#pragma once

#include <turnstile/core/detail/canceller.hpp>
#include <turnstile/core/detail/completion_route.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// A waiter with its handler. Ask says what is waited for, Memory where the operation lives
// and how the handler takes its result; see start_wait.hpp.
template <class Ask, class Handler, class Memory>
class wait_operation final : public Ask::waiter_type {
    using threading = typename Ask::threading;
    using handler_executor = asio::associated_executor_t<Handler, typename Ask::executor_type>;
    using allocator_type = typename std::allocator_traits<
        typename Memory::template allocator<Handler>>::template rebind_alloc<wait_operation>;
    using traits = std::allocator_traits<allocator_type>;

public:
    struct deleter {
        void operator()(wait_operation* op) const { op->destroy(); }
    };
    using pointer = std::unique_ptr<wait_operation, deleter>;

    template <class H>
    static pointer make(Ask& ask, H&& handler, const Memory& memory)
    {
        allocator_type allocator(memory.allocator_for(handler));
        wait_operation* p = traits::allocate(allocator, 1);
        try {
            return pointer(new (p) wait_operation(ask, std::forward<H>(handler), memory));
        } catch (...) {
            traits::deallocate(allocator, p, 1);
            throw;
        }
    }

    void arm() { arm_cancellation(handler_, *state_, *this); }

    // Hands the operation over to the object's queue; from here on it owns itself. The
    // object, which is the caller's, keeps the state alive for the call.
    static void start(pointer op) noexcept
    {
        wait_operation& self = *op.release();
        self.ask_.state().start(self);
    }

private:
    template <class H>
    wait_operation(Ask& ask, H&& handler, const Memory& memory)
        // The Ask may carry a value, which the operation now owns.
        : Ask::waiter_type(&wait_operation::run), ask_(std::move(ask)),
          handler_(std::forward<H>(handler)), memory_(memory), state_(&ask_.state())
    {
        this->elsewhere =
            route_.choose(asio::get_associated_executor(handler_, ask_.executor()), *state_, *this);
        ask_.prepare(*this);
    }
    ~wait_operation() = default;

    static void run(waiter& w, how what)
    {
        auto& self = static_cast<wait_operation&>(w);
        if (what == how::destroy)
            self.discard();
        else if (!self.route_.needs_hop()) [[likely]]
            self.complete();
        else
            self.hop();
    }

    // Ends the operation, and calls its handler. Everything is freed before the handler runs:
    // it may reuse the memory, or destroy the object. The route goes last, since it keeps the
    // handler's context running.
    void complete()
    {
        auto result = memory_.collect(ask_, *this, state_->settle(*this));
        const auto route = std::move(route_);
        const Memory memory = memory_;
        Handler handler = release_handler();
        memory.complete(std::move(handler), std::move(result));
    }

    // From the object's executor to the handler's, where it may still be cancelled. But the
    // state of a confined object must not be touched there, so that one settles here.
    void hop()
    {
        const auto executor = route_.executor();
        if constexpr (threading::is_confined) {
            auto result = memory_.collect(ask_, *this, state_->settle(*this));
            const auto route = std::move(route_);
            const Memory memory = memory_;
            Handler handler = release_handler();
            asio::dispatch(executor,
                           [memory, h = std::move(handler), r = std::move(result)]() mutable {
                               memory.complete(std::move(h), std::move(r));
                           });
        } else {
            asio::dispatch(executor, [op = pointer(this)]() mutable { op.release()->complete(); });
        }
    }

    void discard()
    {
        state_->abandon(*this);
        [[maybe_unused]] const Handler handler = release_handler();
    }

    // Ends the operation and frees its memory.
    Handler release_handler() noexcept
    {
        allocator_type allocator(memory_.allocator_for(handler_));
        Handler handler(std::move(handler_));
        this->~wait_operation();
        traits::deallocate(allocator, this, 1);
        return handler;
    }

    Ask ask_;
    Handler handler_;
    [[no_unique_address]] Memory memory_;
    wait_state<threading>* state_; // kept alive by whoever runs this, or by the route
    completion_route<handler_executor, threading> route_;
};

} // namespace turnstile::detail
