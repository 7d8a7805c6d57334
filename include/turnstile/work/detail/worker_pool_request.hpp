// SPDX-License-Identifier: BSL-1.0
// The requests of the initiating functions of worker_pool.
//
// A job is made when the initiating function is called, so that its memory is there before anything
// is changed, and submitting it cannot fail. A request whose pool was closed before has no job.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/wait/wait_request.hpp>
#include <turnstile/work/detail/worker_pool_job.hpp>
#include <turnstile/work/detail/worker_pool_state.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class State>
struct pool_request {
    using executor_type = typename State::executor_type;
    using threading = typename State::threading_policy;
    using waiter_type = pool_waiter;

    const executor_type* home;
    State* state_ptr;

    const executor_type& executor() const noexcept { return *home; }
    State& state() const noexcept { return *state_ptr; }
};

// The job of a request. A copy of the request, which a copy of a deferred operation makes, has a
// copy of the job, which must be copyable then. Node is the type of the job.
template <class Node>
class requested_job : public pool_job_ptr {
public:
    requested_job(pool_job_ptr job) noexcept : pool_job_ptr(std::move(job)) {}
    requested_job(requested_job&&) noexcept = default;
    requested_job(const requested_job& other) : pool_job_ptr(copy(other.get())) {}
    requested_job& operator=(requested_job&&) noexcept = default;

private:
    static pool_job* copy(const pool_job* job)
    {
        if (!job)
            return nullptr;
        if constexpr (std::is_copy_constructible_v<typename Node::job_type>)
            return new Node(job->priority, static_cast<const Node*>(job)->value);
        else
            throw_error(errc::invalid_argument, "worker_pool: the job cannot be copied");
    }
};

template <class State>
struct pool_submit_request : pool_request<State> {
    using result_type = void;
    static constexpr request_traits traits{.irrevocable = true, .result = result_source::outcome};

    requested_job<typed_pool_job<typename State::job_type>> job;

    wait_decision try_now() noexcept
    {
        if (!job)
            return wait_decision::refused(errc::closed);
        const wait_decision d = this->state_ptr->try_enter(*job);
        if (d.is_granted())
            static_cast<void>(job.release());
        return d;
    }
    void give_back() const noexcept {}
    void prepare(pool_waiter& w) const noexcept { w.kind = pool_wait::submit; }
    wait_outcome<void> conclude_now() const noexcept { return {}; }
    wait_outcome<void> conclude(pool_waiter&) noexcept
    {
        const wait_decision d = this->state_ptr->enter(*job);
        if (d.is_granted())
            static_cast<void>(job.release());
        return {d.error()};
    }
};

// A result that cannot be default constructed is delivered in an optional.
template <class Result>
struct delivered_result {
    using type =
        std::conditional_t<std::default_initializable<Result>, Result, std::optional<Result>>;
};
template <>
struct delivered_result<void> {
    using type = void;
};

template <class State>
struct pool_run_request : pool_request<State> {
    using result_type = typename delivered_result<typename State::result_type>::type;
    using outcome_type = wait_outcome<result_type>;
    static constexpr request_traits traits{
        .irrevocable = true, .result = result_source::outcome, .reports_exception = true};

    requested_job<typename State::job_with_result> job;
    std::exception_ptr* exception = nullptr; // where the exception of the job goes

    wait_decision try_now() const noexcept
    {
        return !job || this->state_ptr->is_closed() ? wait_decision::refused(errc::closed)
                                                    : wait_decision::pending();
    }
    void give_back() const noexcept {}
    void prepare(pool_waiter& w) noexcept
    {
        w.kind = pool_wait::run;
        w.job = job.release();
    }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception = &thrown; }
    outcome_type conclude_now() const noexcept { return {errc::closed}; } // never granted
    outcome_type conclude(pool_waiter& w) noexcept
    {
        auto& ended = static_cast<typename State::job_with_result&>(*w.job);
        outcome_type outcome;
        std::exception_ptr thrown = ended.thrown;
        if constexpr (!std::is_void_v<result_type>) {
            if (!thrown) {
                try {
                    if constexpr (moves_safely<result_type>)
                        outcome.value = result_type(*ended.result);
                    else
                        outcome.value = std::make_unique<result_type>(*ended.result);
                } catch (...) {
                    thrown = std::current_exception();
                }
            }
        }
        if (thrown) {
            outcome.error = failure(thrown).code();
            if (exception)
                *exception = std::move(thrown);
        }
        return outcome;
    }
};

template <class State>
struct pool_idle_request : pool_request<State> {
    using result_type = void;
    static constexpr request_traits traits{.refundable = true};

    wait_decision try_now() const noexcept { return this->state_ptr->try_idle(); }
    void give_back() const noexcept {}
    void prepare(pool_waiter& w) const noexcept { w.kind = pool_wait::idle; }
};

template <class State>
struct pool_shutdown_request : pool_request<State> {
    using result_type = void;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .explains_refusal = true};

    shutdown_mode mode;
    nanoseconds deadline;

    wait_decision try_now() const noexcept
    {
        if (deadline < nanoseconds::zero())
            return wait_decision::refused(errc::invalid_argument);
        return this->state_ptr->try_shut_down(mode, deadline);
    }
    void give_back() const noexcept {}
    void prepare(pool_waiter& w) const noexcept { w.kind = pool_wait::shutdown; }
    wait_outcome<void> conclude_now() const noexcept
    {
        if (this->state_ptr->was_cut_off())
            return {errc::timed_out};
        return {};
    }
    wait_outcome<void> conclude(pool_waiter&) const noexcept { return conclude_now(); }
    system_error refusal(errc code) const
    {
        return system_error(code, "worker_pool: deadline must not be negative");
    }
};

} // namespace turnstile::inline v0_1::detail
