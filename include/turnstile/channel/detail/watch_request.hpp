// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/watch_state.hpp>
#include <turnstile/detail/post/outstanding_work.hpp>
#include <turnstile/detail/wait/guarded_predicate.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A wait for a version other than the one seen.
template <class Watch>
struct change_request {
    using executor_type = typename Watch::executor_type;
    using threading = typename Watch::threading_policy;
    using result_type = typename Watch::snapshot_type;
    using waiter_type = change_waiter;
    static constexpr request_traits traits{.refundable = true, .result = result_source::outcome};

    const executor_type* executor_;
    watch_state<threading>* state_; // at the delivery, the watch may be gone
    std::uint64_t seen;

    const executor_type& executor() const noexcept { return *executor_; }
    watch_state<threading>& state() const noexcept { return *state_; }

    wait_decision try_now() const noexcept { return state_->changed_since(seen); }
    void give_back() const noexcept {}
    void prepare(change_waiter& w) const noexcept { w.seen = seen; }
    wait_outcome<result_type> conclude_now() const noexcept
    {
        return {error_code(), result_type(state_->load())};
    }
    wait_outcome<result_type> conclude(change_waiter&) const noexcept { return conclude_now(); }
};

// A wait for a value that satisfies a predicate, which may end the watch when it is called.
template <class Watch, class Predicate>
class search_request final : public search_waiter<typename Watch::threading_policy>::user {
public:
    using executor_type = typename Watch::executor_type;
    using threading = typename Watch::threading_policy;
    using result_type = typename Watch::snapshot_type;
    using waiter_type = search_waiter<threading>;
    static constexpr request_traits traits{
        .refundable = true,
        .irrevocable = true, // the initiating function calls no predicate
        .result = result_source::outcome,
        .tests_predicate = true,
    };

    search_request(executor_type executor, watch_state<threading>& state, Predicate predicate)
        : executor_(std::move(executor)), state_(&state), predicate_(std::move(predicate))
    {
    }

    guarded_predicate<Predicate>& predicate_guard() noexcept { return predicate_; }

    const executor_type& executor() const noexcept { return executor_; }
    watch_state<threading>& state() const noexcept { return *state_; }

    wait_decision try_now() noexcept { return look(seen_); }
    void give_back() const noexcept {}
    // Not const: the operation keeps using this ask, which must be its own.
    void prepare(waiter_type& w)
    {
        w.seen = seen_;
        w.bind(*this, *state_);
        work_.emplace(executor_);
    }
    wait_outcome<result_type> conclude_now() noexcept { return {error_code(), std::move(found_)}; }
    wait_outcome<result_type> conclude(waiter_type&) noexcept { return conclude_now(); }

private:
    wait_decision look(std::uint64_t& seen) noexcept override
    {
        found_ = result_type(state_->load());
        seen = found_.version();
        return predicate_(*found_);
    }

    executor_type executor_;
    boost::intrusive_ptr<watch_state<threading>> state_;
    std::uint64_t seen_ = 0;
    result_type found_;
    guarded_predicate<Predicate> predicate_;
    // While a predicate is called elsewhere nobody may be waiting, but it is not over.
    std::optional<executor_work<executor_type>> work_;
};

} // namespace turnstile::inline v0_1::detail
