#pragma once

#include <turnstile/core/detail/completion_target.hpp>
#include <turnstile/core/detail/executor_work.hpp>
#include <turnstile/core/detail/handler_allocator.hpp>
#include <turnstile/core/detail/system_executor.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace turnstile::detail {

// Where a handler's completion is posted. Nearly always that is the object's own executor,
// and then this is a null pointer. Cargo is what is left of an operation that ends on the object's
// executor, and goes on to the handler's.
template <class HandlerExecutor, class Threading, class Allocator, class Cargo>
class completion_route {
public:
    // What must outlive the operation, until its handler has run.
    struct hold {
        wait_state_ptr<Threading> state; // nobody else may have one by the time it arrives
        executor_work<HandlerExecutor> work;
    };

    bool is_home() const noexcept { return !foreign_; }

    // Whether the completion is posted to the object's executor, and dispatched from there.
    bool needs_hop() const noexcept { return foreign_ && !foreign_->way; }

    // The handler's executor; only if that is not the object's own.
    HandlerExecutor executor() const noexcept { return foreign_->held.work.get_executor(); }

    // The same: what is left of the route when its memory is freed.
    hold leave() noexcept
    {
        const auto gone = std::move(foreign_);
        return std::move(gone->held);
    }

    // The way to the handler's executor, or null if it is the object's own.
    detour* choose(const HandlerExecutor& executor, wait_state<Threading>& state, waiter& w,
                   const Allocator& allocator)
    {
        if constexpr (postable_executor<HandlerExecutor>) {
            if (state.home().is(executor)) [[likely]]
                return nullptr;
        }
        return choose_foreign(executor, state, w, allocator);
    }

    // What only a handler elsewhere needs stays out of everybody's way.
    struct foreign {
        hold held;
        Allocator allocator;
        std::optional<detour> way;
        std::optional<Cargo> cargo;
    };
    struct deleter {
        TURNSTILE_COLD void operator()(foreign* f) const noexcept
        {
            destroy_with(Allocator(f->allocator), f);
        }
    };
    using baggage = std::unique_ptr<foreign, deleter>;

    // The same as leave(), for one whose cargo goes on.
    baggage pack() noexcept { return std::move(foreign_); }

private:
    TURNSTILE_COLD detour* choose_foreign(const HandlerExecutor& executor,
                                          wait_state<Threading>& state, [[maybe_unused]] waiter& w,
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
                return &foreign_->way.emplace(completion_target(executor), w);
        }
        return nullptr;
    }

    baggage foreign_;
};

} // namespace turnstile::detail
