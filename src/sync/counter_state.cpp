// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/counter_state.hpp>

namespace turnstile::inline v0_1::detail {

// No difference below overflows: the bounds leave half of the type's range unused.
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
wait_decision counter_state<Threading>::change(std::int64_t n, calculation calculate,
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
wait_decision counter_state<Threading>::try_now(const counter_goal& goal) const noexcept
{
    if (goal.kind == counter_goal::goal_kind::at_least && goal.threshold > upper_)
        return wait_decision::refused(errc::over_count);
    if (goal.kind == counter_goal::goal_kind::at_most && goal.threshold < lower_)
        return wait_decision::refused(errc::negative_count);
    return goal.decide(value());
}

// Everything below runs under the lock. While `awaited` is set, the word changes only there.

template <class Threading>
std::int64_t counter_state<Threading>::set_awaited() noexcept
{
    return value_of(set_bits(word_, awaited));
}

template <class Threading>
bool counter_state<Threading>::has_queued() const noexcept
{
    return !at_least_.empty() || !at_most_.empty() || !this->queue_.empty();
}

template <class Threading>
wait_decision counter_state<Threading>::change_awaited(std::int64_t n, calculation calculate,
                                                       std::int64_t& value) noexcept
{
    return this->update([&](ready_list& ready) {
        value = set_awaited();
        const wait_decision result = (this->*calculate)(n, value);
        if (result.is_granted())
            serve(value, ready);
        word_.store(value * one | (has_queued() ? awaited : 0), std::memory_order_release);
        return result;
    });
}

template <class Threading>
counter_waiter& counter_state<Threading>::take_first(threshold_tree& tree) noexcept
{
    counter_waiter& w = *tree.begin();
    tree.erase(tree.begin());
    return w;
}

template <class Threading>
void counter_state<Threading>::serve_tree(threshold_tree& tree, std::int64_t value,
                                          ready_list& ready) noexcept
{
    while (!tree.empty() && tree.begin()->decide_at(value))
        ready.push_back(take_first(tree));
}

template <class Threading>
void counter_state<Threading>::serve(std::int64_t value, ready_list& ready) noexcept
{
    serve_tree(at_least_, value, ready);
    serve_tree(at_most_, value, ready);
    for (auto it = this->queue_.begin(); it != this->queue_.end();) {
        auto& w = static_cast<counter_waiter&>(*it++);
        if (!w.decide_at(value))
            continue;
        w.waiter_hook::unlink();
        ready.push_back(w);
    }
}

template <class Threading>
bool counter_state<Threading>::admit(waiter& w) noexcept
{
    auto& self = static_cast<counter_waiter&>(w);
    const auto set_awaited_if_pending = [&](std::int64_t& word) noexcept {
        if (self.decide_at(value_of(word)))
            return false;
        const bool was_unawaited = !(word & awaited);
        word |= awaited;
        return was_unawaited;
    };
    word_.update(set_awaited_if_pending, std::memory_order_acq_rel);
    if (!self.is_pending())
        return true;
    switch (self.goal.kind) {
    case counter_goal::goal_kind::at_least:
        at_least_.insert(self);
        break;
    case counter_goal::goal_kind::at_most:
        at_most_.insert(self);
        break;
    case counter_goal::goal_kind::predicate:
        this->queue_.push_back(w);
    }
    return false;
}

template <class Threading>
void counter_state<Threading>::remove(waiter& w) noexcept
{
    auto& self = static_cast<counter_waiter&>(w);
    if (self.goal.kind == counter_goal::goal_kind::predicate)
        self.waiter_hook::unlink();
    else
        self.counter_hook::unlink();
}

template <class Threading>
void counter_state<Threading>::reconsider(ready_list&) noexcept
{
    if (!has_queued())
        word_.store(word_.load(std::memory_order_relaxed) & ~awaited, std::memory_order_release);
}

template <class Threading>
void counter_state<Threading>::take_all(waiter_list& out) noexcept
{
    for (threshold_tree* tree : {&at_least_, &at_most_}) {
        while (!tree->empty())
            out.push_back(take_first(*tree));
    }
    wait_state<Threading>::take_all(out);
}

template class counter_state<thread_safe>;
template class counter_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
