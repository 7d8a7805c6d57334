// SPDX-License-Identifier: BSL-1.0
// The state of a resource_pool with the type of its resources: the operations of the user, and the
// slots and calls. And the requests of the initiating functions.
#pragma once

#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/work/detail/resource_pool_call.hpp>
#include <turnstile/work/detail/resource_pool_state.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/assert/source_location.hpp>

#include <exception>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class T, class Executor, class Threading, clock_policy Clock>
class typed_pool_state final : public resource_pool_state<Threading, Clock> {
    using base = resource_pool_state<Threading, Clock>;

public:
    typed_pool_state(const Executor& executor, const resource_pool_options& options,
                     resource_operations<T> operations)
        : base(executor, options, abilities(operations)), executor_(executor),
          operations_(std::move(operations))
    {
    }

private:
    using slot_type = typed_pool_slot<T>;

    static resource_pool_machine::abilities abilities(const resource_operations<T>& o)
    {
        if (!o.create)
            throw_error(errc::invalid_argument, "resource_pool: create must not be null");
        return {static_cast<bool>(o.check), static_cast<bool>(o.reset), static_cast<bool>(o.close)};
    }

    pool_slot_ptr make_slot() override { return new slot_type; }
    pool_call_ptr make_call(const pool_slot_ptr& slot, slot_phase phase) override
    {
        // The call keeps the slot and the state while the operation runs.
        auto* const s = static_cast<slot_type*>(slot.get());
        switch (phase) {
        case slot_phase::creating:
            // co_spawn would need a T that is default constructible.
            return make<void>(slot, [this, s]() -> asio::awaitable<void> {
                s->value.emplace(co_await operations_.create());
            });
        case slot_phase::checking:
            return make<bool>(slot, [this, s] { return operations_.check(*s->value); });
        case slot_phase::resetting:
            return make<void>(slot, [this, s] { return operations_.reset(*s->value); });
        default:
            return make<void>(slot, [this, s] { return operations_.close(*s->value); });
        }
    }
    template <class R, class Op>
    pool_call_ptr make(const pool_slot_ptr& slot, Op op)
    {
        using call = typed_pool_call<R, Op, Executor, typed_pool_state>;
        return new call(executor_, *this, slot, std::move(op));
    }

    const Executor executor_;
    const resource_operations<T> operations_;
};

template <class Executor, class State>
struct resource_request {
    using executor_type = Executor;
    using threading = typename State::threading;
    using waiter_type = resource_waiter;

    const Executor* home;
    State* state_ptr;
    nanoseconds within;

    const Executor& executor() const noexcept { return *home; }
    State& state() const noexcept { return *state_ptr; }

protected:
    void prepare_deadline(resource_waiter& w) const noexcept
    {
        if (within != nanoseconds::max())
            w.deadline = saturating_add(State::now(), within);
    }
};

template <class Executor, class State, class Lease>
struct acquire_request : resource_request<Executor, State> {
    using result_type = Lease;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .reports_exception = true};

    boost::source_location where;
    pool_slot* taken = nullptr;
    pool_failure failed{};
    std::exception_ptr* thrown = nullptr;

    TURNSTILE_HOT wait_decision try_now() noexcept
    {
        return this->state_ptr->try_acquire(taken, failed, where);
    }
    void give_back() noexcept
    {
        if (taken)
            this->state_ptr->give_back_unused(*std::exchange(taken, nullptr));
    }
    void prepare(resource_waiter& w) noexcept
    {
        w.where = where;
        w.slot = std::exchange(taken, nullptr); // of a granted try_now()
        w.failed = std::move(failed);
        this->prepare_deadline(w);
    }
    void keep_exception_in(std::exception_ptr& exception) noexcept { thrown = &exception; }
    TURNSTILE_HOT wait_outcome<Lease> conclude_now() noexcept { return conclude(taken, failed); }
    wait_outcome<Lease> conclude(resource_waiter& w) noexcept { return conclude(w.slot, w.failed); }

private:
    TURNSTILE_HOT wait_outcome<Lease> conclude(pool_slot*& slot, pool_failure& why) noexcept
    {
        wait_outcome<Lease> outcome;
        if (pool_slot* const s = std::exchange(slot, nullptr)) [[likely]] {
            outcome.value = Lease(*this->state_ptr, *s);
        } else {
            outcome.error = why.code;
            if (thrown)
                *thrown = std::move(why.exception);
        }
        return outcome;
    }
};

template <class Executor, class State>
struct pool_close_request : resource_request<Executor, State> {
    using result_type = void;
    static constexpr request_traits traits{.refundable = true, .result = result_source::outcome};

    wait_decision try_now() const noexcept { return this->state_ptr->try_close(); }
    void give_back() const noexcept {}
    void prepare(resource_waiter& w) const noexcept
    {
        w.kind = resource_wait::close;
        this->prepare_deadline(w);
    }
    wait_outcome<void> conclude_now() const noexcept { return {}; }
    wait_outcome<void> conclude(resource_waiter& w) const noexcept { return {w.failed.code}; }
};

} // namespace turnstile::inline v0_1::detail
