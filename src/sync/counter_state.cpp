// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/counter_state.hpp>

namespace turnstile::inline v0_1::detail {

// The bounds are so far from the ends of the type that no difference overflows.
template <class Threading>
wait_decision counter_state<Threading>::sum(std::int64_t n, std::int64_t& value) const noexcept
{
    if (n > upper_ - value)
        return wait_decision::refused(errc::over_count);
    if (n < lower_ - value)
        return wait_decision::refused(errc::negative_count);
    value += n;
    return wait_decision::granted();
}

template <class Threading>
wait_decision counter_state<Threading>::difference(std::int64_t n,
                                                   std::int64_t& value) const noexcept
{
    if (n > value - lower_)
        return wait_decision::refused(errc::negative_count);
    if (n < value - upper_)
        return wait_decision::refused(errc::over_count);
    value -= n;
    return wait_decision::granted();
}

template <class Threading>
wait_decision counter_state<Threading>::change(std::int64_t n, step calculate,
                                               std::int64_t& value) noexcept
{
    wait_decision result = wait_decision::unattempted();
    const auto change_unawaited = [&](std::int64_t& word) noexcept {
        value = value_of(word);
        result = word & awaited ? wait_decision::unattempted() : (this->*calculate)(n, value);
        word = value * one;
        return result.is_granted();
    };
    word_.update(change_unawaited, std::memory_order_acq_rel);
    return result.is_unattempted() ? change_awaited(n, calculate, value) : result;
}

template <class Threading>
wait_decision counter_state<Threading>::try_now(const count_goal& goal) const noexcept
{
    if (goal.what == count_goal::kind::at_least && goal.threshold > upper_)
        return wait_decision::refused(errc::over_count);
    if (goal.what == count_goal::kind::at_most && goal.threshold < lower_)
        return wait_decision::refused(errc::negative_count);
    return goal.at(value());
}

// Everything below runs under the lock. With `awaited` set nobody else writes the word.

template <class Threading>
std::int64_t counter_state<Threading>::set_awaited() noexcept
{
    return value_of(set_bits(word_, awaited));
}

template <class Threading>
bool counter_state<Threading>::nobody_waits() const noexcept
{
    return rising_.empty() && falling_.empty() && this->queue_.empty();
}

template <class Threading>
wait_decision counter_state<Threading>::change_awaited(std::int64_t n, step calculate,
                                                       std::int64_t& value) noexcept
{
    return this->update([&](ready_list& ready) {
        value = set_awaited();
        const wait_decision result = (this->*calculate)(n, value);
        if (result.is_granted())
            wake(value, ready);
        word_.store(value * one | (nobody_waits() ? 0 : awaited), std::memory_order_release);
        return result;
    });
}

template <class Threading>
count_waiter& counter_state<Threading>::take_first(tree& waiting) noexcept
{
    count_waiter& w = *waiting.begin();
    waiting.erase(waiting.begin());
    return w;
}

template <class Threading>
void counter_state<Threading>::wake_reached(tree& waiting, std::int64_t value,
                                            ready_list& ready) noexcept
{
    while (!waiting.empty() && waiting.begin()->sees(value))
        ready.push_back(take_first(waiting));
}

template <class Threading>
void counter_state<Threading>::wake(std::int64_t value, ready_list& ready) noexcept
{
    wake_reached(rising_, value, ready);
    wake_reached(falling_, value, ready);
    for (auto it = this->queue_.begin(); it != this->queue_.end();) {
        auto& w = static_cast<count_waiter&>(*it++);
        if (!w.sees(value))
            continue;
        w.waiter_hook::unlink();
        ready.push_back(w);
    }
}

template <class Threading>
bool counter_state<Threading>::admit(waiter& w) noexcept
{
    auto& self = static_cast<count_waiter&>(w);
    const auto await_other = [&](std::int64_t& word) noexcept {
        if (self.sees(value_of(word)))
            return false;
        const bool was_unawaited = !(word & awaited);
        word |= awaited;
        return was_unawaited;
    };
    word_.update(await_other, std::memory_order_acq_rel);
    if (!self.is_pending())
        return true;
    switch (self.goal.what) {
    case count_goal::kind::at_least:
        rising_.insert(self);
        break;
    case count_goal::kind::at_most:
        falling_.insert(self);
        break;
    case count_goal::kind::predicate:
        this->queue_.push_back(w);
    }
    return false;
}

template <class Threading>
void counter_state<Threading>::remove(waiter& w) noexcept
{
    auto& self = static_cast<count_waiter&>(w);
    if (self.goal.what == count_goal::kind::predicate)
        self.waiter_hook::unlink();
    else
        self.count_hook::unlink();
}

template <class Threading>
void counter_state<Threading>::reconsider(ready_list&) noexcept
{
    if (nobody_waits())
        word_.store(word_.load(std::memory_order_relaxed) & ~awaited, std::memory_order_release);
}

template <class Threading>
void counter_state<Threading>::take_all(waiter_list& out) noexcept
{
    for (tree* waiting : {&rising_, &falling_}) {
        while (!waiting->empty())
            out.push_back(take_first(*waiting));
    }
    wait_state<Threading>::take_all(out);
}

template class counter_state<thread_safe>;
template class counter_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
