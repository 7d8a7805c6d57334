// SPDX-License-Identifier: BSL-1.0
// The state of counter, and the request of its waits: an integer between two bounds, and the
// operations that wait until it has a certain value.
//
// One word holds the value and a flag:
//
//    63      1         0
//   [ value   | awaited ]
//
//   awaited   Operations wait. The word then changes only under the lock. While it is clear, the
//             word changes by compare-and-swap.
//
// Waiters for a threshold are in two trees, sorted by the distance of the threshold, so a change
// visits only the waiters that it grants and the first of the rest. Waiters with a predicate are in
// `queue_`, and every change visits all of them.
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/intrusive/set.hpp>

#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1::detail {

using counter_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>,
                                    boost::intrusive::optimize_size<true>>;

// The condition that a wait waits for: a threshold, to be reached from below or from above, or a
// predicate of the value. A predicate that throws refuses the wait.
struct counter_goal {
    enum class goal_kind : unsigned char { at_least, at_most, predicate };
    using test_function = wait_decision (*)(const void* predicate, std::int64_t value) noexcept;

    goal_kind kind = goal_kind::at_most;
    std::int64_t threshold = 0;
    const void* predicate = nullptr;
    test_function test = nullptr;

    wait_decision decide(std::int64_t value) const noexcept
    {
        if (kind == goal_kind::predicate)
            return test(predicate, value);
        const bool reached = kind == goal_kind::at_least ? value >= threshold : value <= threshold;
        return reached ? wait_decision::granted() : wait_decision::pending();
    }
};

struct counter_waiter : waiter, counter_hook {
    using waiter::waiter;

    // Returns whether this value decides the wait.
    bool decide_at(std::int64_t value) noexcept
    {
        decide(goal.decide(value));
        return !is_pending();
    }

    counter_goal goal;
};

template <class Threading>
class TURNSTILE_EXPORT counter_state final : public wait_state<Threading> {
public:
    // The flag takes one of the 64 bits.
    static constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max() / 2;
    static constexpr std::int64_t lowest = -highest - 1;

    template <class Executor>
    counter_state(const Executor& executor, std::int64_t value, std::int64_t lower,
                  std::int64_t upper)
        : wait_state<Threading>(executor), lower_(lower), upper_(upper), word_(value * one)
    {
    }

    std::int64_t value() const noexcept { return value_of(word_.load(std::memory_order_acquire)); }
    std::int64_t lower() const noexcept { return lower_; }
    std::int64_t upper() const noexcept { return upper_; }

    // Adds or subtracts n. Refused, and nothing is changed, if that would cross a bound. `value`
    // is the value after the call in either case.
    wait_decision add(std::int64_t n, std::int64_t& value) noexcept
    {
        return change(n, &counter_state::sum, value);
    }
    wait_decision sub(std::int64_t n, std::int64_t& value) noexcept
    {
        return change(n, &counter_state::difference, value);
    }

    // The fast path of a wait.
    wait_decision try_now(const counter_goal& goal) const noexcept;

private:
    static constexpr std::int64_t awaited = 1;
    static constexpr std::int64_t one = 2;

    // Changes `value` by n, or refuses to.
    using calculation = wait_decision (counter_state::*)(std::int64_t n,
                                                         std::int64_t& value) const noexcept;
    wait_decision sum(std::int64_t n, std::int64_t& value) const noexcept;
    wait_decision difference(std::int64_t n, std::int64_t& value) const noexcept;

    static std::int64_t value_of(std::int64_t word) noexcept { return word >> 1; }

    wait_decision change(std::int64_t n, calculation calculate, std::int64_t& value) noexcept;
    wait_decision change_awaited(std::int64_t n, calculation calculate,
                                 std::int64_t& value) noexcept;
    void serve(std::int64_t value, ready_list& ready) noexcept;
    std::int64_t set_awaited() noexcept;
    bool has_queued() const noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;

    // Waiters with equal thresholds stay in the order of their arrival.
    struct nearest_first {
        bool operator()(const counter_waiter& a, const counter_waiter& b) const noexcept
        {
            return a.goal.kind == counter_goal::goal_kind::at_least
                       ? a.goal.threshold < b.goal.threshold
                       : a.goal.threshold > b.goal.threshold;
        }
    };
    using threshold_tree =
        boost::intrusive::multiset<counter_waiter, boost::intrusive::base_hook<counter_hook>,
                                   boost::intrusive::compare<nearest_first>,
                                   boost::intrusive::constant_time_size<false>>;
    static counter_waiter& take_first(threshold_tree& tree) noexcept;
    static void serve_tree(threshold_tree& tree, std::int64_t value, ready_list& ready) noexcept;

    const std::int64_t lower_;
    const std::int64_t upper_;
    policy_atomic<Threading, std::int64_t> word_;
    threshold_tree at_least_;
    threshold_tree at_most_;
    // Predicates wait in queue_.
};

extern template class counter_state<thread_safe>;
extern template class counter_state<strand_confined>;

// A predicate that converts to a counter_goal. The goal refers to the predicate, which must stay
// where it is.
template <class Predicate>
struct predicate_goal {
    Predicate predicate;

    operator counter_goal() const noexcept
    {
        return {counter_goal::goal_kind::predicate, 0, &predicate, &predicate_goal::test};
    }

    static wait_decision test(const void* self, std::int64_t value) noexcept
    {
        try {
            const bool holds = (*static_cast<const Predicate*>(self))(value);
            return holds ? wait_decision::granted() : wait_decision::pending();
        } catch (...) {
            return wait_decision::refused(errc::predicate_failed);
        }
    }
};

// A wait for a Goal, which is a counter_goal or a predicate_goal. The goal of the waiter refers to
// the predicate in the request, which lives as long as the waiter.
template <class Owner, class Goal>
struct counter_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = void;
    using waiter_type = counter_waiter;
    static constexpr request_traits traits{.refundable = true};

    Owner* owner;
    Goal goal;

    const executor_type& executor() const noexcept { return owner->executor(); }
    counter_state<threading>& state() const noexcept { return owner->state(); }

    wait_decision try_now() const noexcept { return state().try_now(goal); }
    void give_back() const noexcept {}
    void prepare(counter_waiter& w) const noexcept { w.goal = goal; }
};

} // namespace turnstile::inline v0_1::detail
