// SPDX-License-Identifier: BSL-1.0
// One run of an operation of a resource_pool on one slot: a creation, a check, a reset or a close.
// It is a child (child_operation.hpp) on a strand of its own, and is always started by a task that
// is posted to that strand, so no operation of the user runs inside a call of the pool.
//
// Invariants: the call keeps its slot, and thereby the resource, until the operation has ended,
// also if the slot is gone because the time of the operation was over. A call is posted, to start
// or to be cancelled, at most once at a time.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/work/detail/resource_pool_machine.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A slot with its resource.
template <class T>
class typed_pool_slot final : public pool_slot {
public:
    void destroy_resource() noexcept override { value.reset(); }

    std::optional<T> value;
};

// The next step of a posted call.
enum class pool_call_step { none, start, cancel, end };

// The call without the types of the operation and of the state.
class pool_call : public intrusive_task, public boost::intrusive_ref_counter<pool_call> {
public:
    explicit pool_call(pool_slot_ptr s) : intrusive_task(&pool_call::run_task), slot(std::move(s))
    {
    }
    virtual ~pool_call() = default;

    // Posts this task, which takes over a reference. Returns false if there is no memory for it.
    virtual bool post_to_strand() noexcept = 0;

    const pool_slot_ptr slot;
    // Guarded by the lock of the state.
    bool is_posted = false;
    bool is_started = false;
    bool is_cancelled = false;
    bool has_ended = false;

protected:
    // The task runs on the strand; or it was dropped, because the context is being destroyed.
    virtual void run_posted() noexcept = 0;
    virtual void drop_posted() noexcept = 0;

private:
    static void run_task(intrusive_task& task, task_action action)
    {
        const boost::intrusive_ptr<pool_call> self(static_cast<pool_call*>(&task), false);
        if (action == task_action::invoke)
            self->run_posted();
        else
            self->drop_posted();
    }
};

using pool_call_ptr = boost::intrusive_ptr<pool_call>;

// Op is a function that returns asio::awaitable<R>, where R is bool or void; State is the typed
// state of the pool.
template <class R, class Op, class Executor, class State>
class typed_pool_call final : public pool_call {
    using signature = operation_signature_t<Op>;
    using self_ptr = boost::intrusive_ptr<typed_pool_call>;

public:
    static void* operator new(std::size_t)
    {
        return cached_allocator<typed_pool_call>().allocate(1);
    }
    static void operator delete(void* memory) noexcept
    {
        cached_allocator<typed_pool_call>().deallocate(static_cast<typed_pool_call*>(memory), 1);
    }

    typed_pool_call(const Executor& executor, State& state, pool_slot_ptr s, Op op)
        : pool_call(std::move(s)), state_(&state), lease_(executor),
          op_(std::in_place, std::move(op))
    {
    }

    // For start_child().
    const policy_lease<Executor, typename State::threading>& lease() const noexcept
    {
        return lease_;
    }
    cached_allocator<void> get_allocator() const noexcept { return {}; }
    void complete(child_operation<signature>& child) noexcept
    {
        std::exception_ptr failed;
        bool is_good = true;
        try {
            failed = child.exception();
            if (failed)
                is_good = false;
            else if constexpr (std::is_same_v<R, bool>)
                is_good = child.take_value();
        } catch (...) {
            failed = std::current_exception();
            is_good = false;
        }
        state_->end_call(*this, std::move(failed), is_good);
    }
    void drop(child_operation<signature>&) noexcept { state_->end_call(*this, nullptr, false); }

private:
    bool post_to_strand() noexcept override
    {
        return posting_executor(lease_.executor()).post(*this);
    }
    void run_posted() noexcept override
    {
        switch (state_->next_step(*this)) {
        case pool_call_step::start:
            return detail::start_child(op_, self_ptr(this), child_);
        case pool_call_step::cancel:
            return child_.cancel(asio::cancellation_type::terminal);
        case pool_call_step::end:
            return state_->end_call(*this, nullptr, false);
        case pool_call_step::none:
            return;
        }
    }
    void drop_posted() noexcept override
    {
        if (state_->ends_with_drop(*this))
            state_->end_call(*this, nullptr, false);
    }

    const boost::intrusive_ptr<State> state_;
    const policy_lease<Executor, typename State::threading> lease_;
    std::optional<Op> op_;
    child_operation<signature> child_;
};

} // namespace turnstile::inline v0_1::detail
