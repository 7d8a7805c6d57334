// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/intrusive/set.hpp>

#include <cstdint>
#include <limits>

namespace turnstile::inline v0_1::detail {

using count_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>,
                                    boost::intrusive::optimize_size<true>>;

// What a count is waited for: a threshold, to be reached from below or from above, or
// whatever a predicate says. One that throws is an answer, too.
struct count_goal {
    enum class kind : unsigned char { at_least, at_most, predicate };
    using test = wait_decision (*)(const void* predicate, std::int64_t value) noexcept;

    kind what = kind::at_most;
    std::int64_t threshold = 0;
    const void* predicate = nullptr;
    test request = nullptr;

    wait_decision at(std::int64_t value) const noexcept
    {
        if (what == kind::predicate)
            return request(predicate, value);
        const bool reached = what == kind::at_least ? value >= threshold : value <= threshold;
        return reached ? wait_decision::granted() : wait_decision::pending();
    }
};

struct count_waiter : waiter, count_hook {
    using waiter::waiter;

    // Whether that value decides the waiter's fate.
    bool sees(std::int64_t value) noexcept
    {
        decide(goal.at(value));
        return !is_pending();
    }

    count_goal goal;
};

// A number between two bounds, and those who wait for it to get somewhere.
//
// While nobody waits it changes by compare-and-swap; while `awaited` is set, under the lock.
// Those who wait for a threshold stand in two trees, each with the nearest first: a change
// looks at the first of each, and no further than at those it lets go.
template <class Threading>
class TURNSTILE_EXPORT counter_state final : public wait_state<Threading> {
public:
    // One bit less than 64: the flag needs it.
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

    // Adds n, or subtracts it; refused with no change if that would cross a bound. Either way
    // `value` is what it is then.
    wait_decision add(std::int64_t n, std::int64_t& value) noexcept
    {
        return change(n, &counter_state::sum, value);
    }
    wait_decision sub(std::int64_t n, std::int64_t& value) noexcept
    {
        return change(n, &counter_state::difference, value);
    }

    // The fast path of a wait.
    wait_decision try_now(const count_goal& goal) const noexcept;

private:
    static constexpr std::int64_t awaited = 1;
    static constexpr std::int64_t one = 2;

    // The new value, or why there is none.
    using step = wait_decision (counter_state::*)(std::int64_t n,
                                                  std::int64_t& value) const noexcept;
    wait_decision sum(std::int64_t n, std::int64_t& value) const noexcept;
    wait_decision difference(std::int64_t n, std::int64_t& value) const noexcept;

    static std::int64_t value_of(std::int64_t word) noexcept { return word >> 1; }

    wait_decision change(std::int64_t n, step calculate, std::int64_t& value) noexcept;
    wait_decision change_awaited(std::int64_t n, step calculate, std::int64_t& value) noexcept;
    void wake(std::int64_t value, ready_list& ready) noexcept;
    std::int64_t set_awaited() noexcept;
    bool nobody_waits() const noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;

    // The nearest first, and among equals who came first.
    struct nearest_first {
        bool operator()(const count_waiter& a, const count_waiter& b) const noexcept
        {
            return a.goal.what == count_goal::kind::at_least ? a.goal.threshold < b.goal.threshold
                                                             : a.goal.threshold > b.goal.threshold;
        }
    };
    using tree = boost::intrusive::multiset<count_waiter, boost::intrusive::base_hook<count_hook>,
                                            boost::intrusive::compare<nearest_first>,
                                            boost::intrusive::constant_time_size<false>>;
    static count_waiter& take_first(tree& waiting) noexcept;
    static void wake_reached(tree& waiting, std::int64_t value, ready_list& ready) noexcept;

    const std::int64_t lower_;
    const std::int64_t upper_;
    policy_atomic<Threading, std::int64_t> word_;
    tree rising_;  // those who wait for at least so much
    tree falling_; // those who wait for at most so much; predicates are in queue_
};

extern template class counter_state<thread_safe>;
extern template class counter_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
