#pragma once

#include <turnstile/core/detail/canceller.hpp>
#include <turnstile/core/detail/outcome.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace turnstile::detail {

// Where a handler's completion is posted, and the work that keeps its context running.
template <class HandlerExecutor>
class completion_route {
public:
    // Whether the completion is posted to `home` and dispatched to the handler from there.
    bool needs_hop() const noexcept { return hop_; }

    template <class Threading>
    const completion_target& choose(const HandlerExecutor& executor,
                                    const wait_state<Threading>& state)
    {
        home_work_ = state.home().track();
        if constexpr (postable_executor<HandlerExecutor>) {
            completion_target own(executor);
            if (own == state.home())
                return state.home();
            own_work_.emplace(executor);
            if constexpr (!Threading::is_confined)
                return own_.emplace(std::move(own));
        } else {
            own_work_.emplace(executor);
        }
        hop_ = true;
        return state.home();
    }

private:
    std::optional<completion_target> own_;
    work_guard home_work_;
    std::optional<asio::executor_work_guard<HandlerExecutor>> own_work_;
    bool hop_ = false;
};

// A waiter with its handler. Ask says what is waited for; see start_wait.hpp.
template <class Ask, class Handler, class Allocator, passing Passing>
class wait_operation final : public Ask::waiter_type {
    using threading = typename Ask::threading;
    using result_type = typename Ask::result_type;
    using handler_executor = asio::associated_executor_t<Handler, typename Ask::executor_type>;
    using allocator_type =
        typename std::allocator_traits<Allocator>::template rebind_alloc<wait_operation>;
    using traits = std::allocator_traits<allocator_type>;

public:
    struct deleter {
        void operator()(wait_operation* op) const { op->destroy(); }
    };
    using pointer = std::unique_ptr<wait_operation, deleter>;

    template <class H>
    static pointer make(Ask& ask, H&& handler, const Allocator& allocator)
    {
        allocator_type memory(allocator);
        wait_operation* p = traits::allocate(memory, 1);
        try {
            return pointer(new (p) wait_operation(ask, std::forward<H>(handler), memory));
        } catch (...) {
            traits::deallocate(memory, p, 1);
            throw;
        }
    }

    void arm() { arm_cancellation(handler_, state_, *this); }

    // Hands the operation over to the object's queue; from here on it owns itself.
    static void start(pointer op) noexcept
    {
        wait_operation& self = *op.release();
        const auto state = self.state_;
        state->start(self);
    }

private:
    template <class H>
    wait_operation(Ask& ask, H&& handler, const allocator_type& allocator)
        : Ask::waiter_type(&wait_operation::run), ask_(std::move(ask)),
          handler_(std::forward<H>(handler)), allocator_(allocator), state_(&ask_.state())
    {
        this->target =
            &route_.choose(asio::get_associated_executor(handler_, ask_.get_executor()), *state_);
        ask_.prepare(*this);
    }
    ~wait_operation() = default;

    static void run(postable& p, postable::how how)
    {
        auto& self = static_cast<wait_operation&>(p);
        if (how == postable::how::invoke)
            self.complete();
        else
            self.discard();
    }

    void complete()
    {
        outcome<result_type> result;
        if (state_->settle(*this)) {
            if constexpr (!std::is_void_v<result_type>)
                result.value = ask_.take(*this);
        } else {
            result.error = this->error();
        }

        // Free everything before the handler runs: it may reuse the memory, or destroy the
        // object. The route goes last, since it is what keeps run() from returning.
        const auto route = std::move(route_);
        const auto ask = std::move(ask_);
        Handler handler(std::move(handler_));
        free();

        if (!route.needs_hop()) {
            complete_with<Passing>(std::move(handler), std::move(result));
            return;
        }
        auto executor = asio::get_associated_executor(handler, ask.get_executor());
        asio::dispatch(executor, [h = std::move(handler), r = std::move(result)]() mutable {
            complete_with<Passing>(std::move(h), std::move(r));
        });
    }

    void discard()
    {
        state_->abandon(*this);
        [[maybe_unused]] const Handler handler(std::move(handler_));
        free();
    }

    void free() noexcept
    {
        allocator_type memory(allocator_);
        this->~wait_operation();
        traits::deallocate(memory, this, 1);
    }

    Ask ask_;
    Handler handler_;
    [[no_unique_address]] allocator_type allocator_;
    wait_state_ptr<threading> state_;
    completion_route<handler_executor> route_;
};

} // namespace turnstile::detail
