// SPDX-License-Identifier: BSL-1.0
// The requests of the two operations that wait at a watch: async_wait_changed and async_wait_for.
//
// Both refer to the state, because the watch may be destroyed before they complete. The request of
// async_wait_for keeps the state alive, because its predicate may destroy the watch.
#pragma once

#include <turnstile/channel/detail/channel_end.hpp>
#include <turnstile/channel/detail/watch_state.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/wait/guarded_predicate.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Watch>
struct watch_changed_request : channel_request<typename Watch::executor_type,
                                               watch_state<typename Watch::threading_policy>> {
    using result_type = typename Watch::snapshot_type;
    using waiter_type = watch_waiter;
    static constexpr request_traits traits{.refundable = true, .result = result_source::outcome};

    std::uint64_t seen;

    wait_decision try_now() const noexcept { return this->state().changed_since(seen); }
    void give_back() const noexcept {}
    void prepare(watch_waiter& w) const noexcept { w.seen = seen; }
    wait_outcome<result_type> conclude_now() const noexcept
    {
        return {error_code(), Watch::make_snapshot(this->state().load())};
    }
    wait_outcome<result_type> conclude(watch_waiter&) const noexcept { return conclude_now(); }
};

template <class Watch, class Predicate>
class watch_predicate_request final
    : public watch_predicate_waiter<typename Watch::threading_policy>::tester {
public:
    using executor_type = typename Watch::executor_type;
    using threading = typename Watch::threading_policy;
    using result_type = typename Watch::snapshot_type;
    using waiter_type = watch_predicate_waiter<threading>;
    static constexpr request_traits traits{
        .refundable = true,
        .irrevocable = true, // the initiating function does not call the predicate
        .result = result_source::outcome,
        .tests_predicate = true,
    };

    watch_predicate_request(executor_type executor, watch_state<threading>& state,
                            Predicate predicate)
        : executor_(std::move(executor)), state_(&state), predicate_(std::move(predicate))
    {
    }

    guarded_predicate<Predicate>& predicate_guard() noexcept { return predicate_; }

    const executor_type& executor() const noexcept { return executor_; }
    watch_state<threading>& state() const noexcept { return *state_; }

    wait_decision try_now() noexcept { return test(seen_); }
    void give_back() const noexcept {}
    // The waiter keeps a pointer to this request, which is a member of the same operation.
    void prepare(waiter_type& w)
    {
        w.seen = seen_;
        w.bind(*this, *state_);
        work_.emplace(executor_);
    }
    wait_outcome<result_type> conclude_now() noexcept { return {error_code(), std::move(found_)}; }
    wait_outcome<result_type> conclude(waiter_type&) noexcept { return conclude_now(); }

private:
    wait_decision test(std::uint64_t& seen) noexcept override
    {
        found_ = Watch::make_snapshot(state_->load());
        seen = found_.version();
        return predicate_(*found_);
    }

    executor_type executor_;
    boost::intrusive_ptr<watch_state<threading>> state_;
    std::uint64_t seen_ = 0;
    result_type found_;
    guarded_predicate<Predicate> predicate_;
    // While the predicate runs on another executor no waiter is queued, but the operation is
    // outstanding.
    std::optional<executor_work<executor_type>> work_;
};

} // namespace turnstile::inline v0_1::detail
