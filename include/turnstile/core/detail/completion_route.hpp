#pragma once

#include <turnstile/core/detail/completion_target.hpp>
#include <turnstile/core/detail/executor_work.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/asio/recycling_allocator.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace turnstile::detail {

// Where a handler's completion is posted. Nearly always that is the object's own executor,
// and then this is a null pointer.
template <class HandlerExecutor, class Threading>
class completion_route {
public:
    // Whether the completion is posted to the object's executor, and dispatched from there.
    bool needs_hop() const noexcept { return foreign_ && !foreign_->way; }

    // The handler's executor; only where there is a hop.
    HandlerExecutor executor() const noexcept { return foreign_->work.get_executor(); }

    // The way to the handler's executor, or null if it is the object's own.
    detour* choose(const HandlerExecutor& executor, wait_state<Threading>& state, waiter& w)
    {
        if constexpr (postable_executor<HandlerExecutor>) {
            if (state.home().is(executor)) [[likely]]
                return nullptr;
        }
        return choose_foreign(executor, state, w);
    }

private:
    // What only a handler elsewhere needs stays out of everybody's way.
    TURNSTILE_COLD detour* choose_foreign(const HandlerExecutor& executor,
                                          wait_state<Threading>& state, [[maybe_unused]] waiter& w)
    {
        foreign_ = make_foreign(executor, state);
        if constexpr (postable_executor<HandlerExecutor> && !Threading::is_confined) {
            if (!belongs_to_system_context(asio::query(executor, asio::execution::context)))
                return &foreign_->way.emplace(completion_target(executor), w);
        }
        return nullptr;
    }

    struct foreign {
        foreign(const HandlerExecutor& executor, wait_state<Threading>& s)
            : state(&s), work(executor)
        {
        }

        wait_state_ptr<Threading> state; // nobody else may hold one by the time it arrives
        std::optional<detour> way;
        executor_work<HandlerExecutor> work;
    };
    using memory = asio::recycling_allocator<foreign>;
    struct recycle {
        TURNSTILE_COLD void operator()(foreign* f) const noexcept
        {
            std::destroy_at(f);
            memory().deallocate(f, 1);
        }
    };

    static std::unique_ptr<foreign, recycle> make_foreign(const HandlerExecutor& executor,
                                                          wait_state<Threading>& state)
    {
        foreign* p = memory().allocate(1);
        return std::unique_ptr<foreign, recycle>(new (p) foreign(executor, state));
    }

    std::unique_ptr<foreign, recycle> foreign_;
};

} // namespace turnstile::detail
