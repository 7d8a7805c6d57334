// SPDX-License-Identifier: BSL-1.0
// A child of a task_group with its operation: the operation until it starts, its strand, its signal
// and its result. And the requests of the initiating functions.
//
// Invariant: the handler of the operation holds a reference to the child. The operation is
// destroyed when it has been started, the result when the child is.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/work/detail/task_group_state.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A child whose result is a T, which may be void.
template <class T, class Threading>
class result_child : public group_child<Threading> {
public:
    using group_child<Threading>::group_child;
    virtual T take_result() = 0;
};

template <class T, class Op, class Executor, class Threading>
class typed_group_child final : public result_child<T, Threading> {
    using signature = operation_signature_t<Op>;
    using self_ptr = boost::intrusive_ptr<typed_group_child>;

public:
    using state_type = task_group_state<Threading>;

    static void* operator new(std::size_t)
    {
        return cached_allocator<typed_group_child>().allocate(1);
    }
    static void operator delete(void* memory) noexcept
    {
        cached_allocator<typed_group_child>().deallocate(static_cast<typed_group_child*>(memory),
                                                         1);
    }

    template <class Source>
    typed_group_child(const Executor& executor, state_type& state, Source&& op, std::string name)
        : result_child<T, Threading>(std::move(name)), group_(&state),
          lease_(std::in_place, executor),
          op_(std::in_place, as_operation(std::forward<Source>(op)))
    {
    }

    // For start_child().
    const policy_lease<Executor, Threading>& lease() const noexcept { return *lease_; }
    cached_allocator<void> get_allocator() const noexcept { return {}; }
    void complete(child_operation<signature>& child) noexcept
    {
        std::exception_ptr failed;
        try {
            failed = child.exception();
        } catch (...) {
            failed = std::current_exception();
        }
        group_->end_child(*this, std::move(failed), true);
    }
    void drop(child_operation<signature>&) noexcept
    {
        group_->end_child(*this, aborted_child(), false);
    }

    T take_result() override
    {
        if constexpr (!std::is_void_v<T>)
            return T(child_.take_value());
    }

private:
    void launch() noexcept override { detail::start_child(op_, self_ptr(this), child_); }
    void emit(asio::cancellation_type_t type) noexcept override { child_.cancel(type); }
    bool post_to_strand() noexcept override
    {
        return posting_executor(lease_->executor()).post(*this);
    }
    void give_back_strand() noexcept override { lease_.reset(); }
    void discard() noexcept override { op_.reset(); }

    state_type* group_;                                      // exists while the child runs
    std::optional<policy_lease<Executor, Threading>> lease_; // until the child has ended
    std::optional<Op> op_;
    child_operation<signature> child_;
};

// Whether a child with this operation has the result that the group collects.
template <class Op, class T>
concept child_of = work_operation<Op> &&
    (std::is_void_v<T> ||
     std::is_constructible_v<std::conditional_t<std::is_void_v<T>, int, T>,
                             typename child_operation<work_signature_t<Op>>::value_type>);

template <class Executor, class Threading>
struct group_request {
    using executor_type = Executor;
    using threading = Threading;
    using waiter_type = group_waiter<Threading>;
    using state_type = task_group_state<Threading>;

    const Executor* home;
    state_type* state_ptr;

    const Executor& executor() const noexcept { return *home; }
    state_type& state() const noexcept { return *state_ptr; }
};

// The exception of the group's report, for a coroutine.
struct kept_exception {
    std::exception_ptr* target = nullptr;

    void keep(std::exception_ptr exception) const noexcept
    {
        if (target)
            *target = std::move(exception);
    }
};

template <class Executor, class Threading>
struct join_request : group_request<Executor, Threading> {
    using result_type = void;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .reports_exception = true};

    bool closes = true;
    kept_exception exception{};

    wait_decision try_now() const noexcept { return this->state_ptr->try_join(closes); }
    void give_back() const noexcept {}
    void prepare(group_waiter<Threading>& w) const noexcept { w.kind = group_wait::join; }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception.target = &thrown; }
    wait_outcome<void> conclude_now() const noexcept
    {
        auto [code, thrown] = this->state_ptr->report();
        exception.keep(std::move(thrown));
        return {code};
    }
    wait_outcome<void> conclude(group_waiter<Threading>&) const noexcept { return conclude_now(); }
};

template <class Executor, class Threading>
struct place_request : group_request<Executor, Threading> {
    using result_type = void;
    static constexpr request_traits traits{.result = result_source::outcome};

    group_child_ptr<Threading> child;
    group_place place{};

    wait_decision try_now() noexcept { return this->state_ptr->try_place(place); }
    void give_back() const noexcept { this->state_ptr->give_place_back(); }
    void prepare(group_waiter<Threading>& w) const noexcept
    {
        w.kind = group_wait::place;
        w.place = place; // of a granted try_now()
    }
    wait_outcome<void> conclude_now() noexcept { return start_in(place); }
    wait_outcome<void> conclude(group_waiter<Threading>& w) noexcept { return start_in(w.place); }

private:
    wait_outcome<void> start_in(group_place granted) noexcept
    {
        this->state_ptr->start_child(std::exchange(child, nullptr), granted);
        return {};
    }
};

template <class T, class Executor, class Threading>
struct next_request : group_request<Executor, Threading> {
    using result_type = std::optional<T>;
    using child = group_child<Threading>;
    static constexpr request_traits traits{.result = result_source::outcome,
                                           .reports_exception = true};

    kept_exception exception{};
    child* reserved = nullptr;

    wait_decision try_now() noexcept
    {
        reserved = nullptr;
        return this->state_ptr->try_next(reserved);
    }
    void give_back() noexcept
    {
        this->state_ptr->put_result_back(std::exchange(reserved, nullptr));
    }
    void prepare(group_waiter<Threading>& w) noexcept
    {
        w.kind = group_wait::next;
        w.result = reserved; // of a granted try_now()
    }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception.target = &thrown; }
    wait_outcome<std::optional<T>> conclude_now() noexcept
    {
        return conclude_with(std::exchange(reserved, nullptr));
    }
    wait_outcome<std::optional<T>> conclude(group_waiter<Threading>& w) noexcept
    {
        return conclude_with(std::exchange(w.result, nullptr));
    }

private:
    wait_outcome<std::optional<T>> conclude_with(child* result) noexcept
    {
        wait_outcome<std::optional<T>> outcome;
        if (!result) {
            auto [code, thrown] = this->state_ptr->report();
            outcome.error = code;
            exception.keep(std::move(thrown));
            return outcome;
        }
        const group_child_ptr<Threading> owner(result, false);
        try {
            T value = static_cast<result_child<T, Threading>*>(result)->take_result();
            if constexpr (moves_safely<T>)
                outcome.value.emplace(std::move(value));
            else
                outcome.value = std::make_unique<T>(std::move(value));
        } catch (...) {
            const failure thrown(std::current_exception());
            outcome.error = thrown.code();
            exception.keep(thrown.exception());
        }
        this->state_ptr->result_taken(*result);
        return outcome;
    }
};

} // namespace turnstile::inline v0_1::detail
