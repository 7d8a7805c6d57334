// SPDX-License-Identifier: BSL-1.0
// The state of cancellation_source: the operations that wait for the cancellation, and the timer of
// cancel_after. The bound operations and the children are in its cancellation_scope, which notifies
// the state when it is cancelled.
//
// Invariant: the scope refers to the state only while the source exists.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/wait/timed_state.hpp>
#include <turnstile/work/detail/cancellation_scope.hpp>

#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading, clock_policy Clock>
class TURNSTILE_EXPORT cancellation_source_state final
    : public timed_state<Threading, Clock, cancellation_waiters<Threading>> {
    using base = timed_state<Threading, Clock, cancellation_waiters<Threading>>;

public:
    using scope_pointer = cancellation_scope_ptr<Threading>;

    template <class Executor>
    cancellation_source_state(const Executor& executor, scope_pointer scope)
        : base(executor, false), scope_(std::move(scope))
    {
    }

    const scope_pointer& scope() const noexcept { return scope_; }

    // Called after the construction of the source, and before its destruction.
    void connect() noexcept
    {
        if (scope_->watch(*this))
            source_cancelled();
    }
    void disconnect() noexcept { scope_->unwatch(); }

    // Returns false, and changes nothing, if there is no memory for the timer.
    bool cancel_after(nanoseconds delay, std::uint32_t type) noexcept
    {
        const nanoseconds when = saturating_add(this->now(), delay);
        return this->guarded([&] {
            if (scope_->is_cancelled(type))
                return true;
            if (when == never)
                this->sleep();
            else if (!this->try_wake_at(when))
                return false;
            deadline_ = when;
            type_ = type;
            return true;
        });
    }

    // A deadline remains if it adds a type of cancellation: `total` first, and later `terminal`.
    void source_cancelled() noexcept override
    {
        this->set(); // puts the timer to sleep, if it grants waiters
        this->guarded([&] {
            if (deadline_ == never || !this->is_alive())
                return;
            if (!scope_->is_cancelled(type_))
                return this->wake_at(deadline_);
            deadline_ = never;
            this->sleep();
        });
    }

private:
    static constexpr nanoseconds never = nanoseconds::max();

    void wake(ready_list&) noexcept override
    {
        if (deadline_ == never || !this->is_alive())
            return;
        if (this->now() < deadline_)
            return this->wake_at(deadline_);
        deadline_ = never;
        due_ = true;
    }
    void woken() noexcept override
    {
        const auto take = [&] { return std::exchange(due_, false) ? type_ : 0; };
        scope_->cancel(this->guarded(take));
    }

    scope_pointer scope_;
    nanoseconds deadline_ = never;
    std::uint32_t type_ = 0;
    bool due_ = false;
};

extern template class timed_state<thread_safe, default_clock, cancellation_waiters<thread_safe>>;
extern template class timed_state<strand_confined, default_clock,
                                  cancellation_waiters<strand_confined>>;
extern template class cancellation_source_state<thread_safe, default_clock>;
extern template class cancellation_source_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
