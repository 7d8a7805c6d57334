// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/watch_state.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
auto watch_state<Threading>::load() noexcept -> snapshot
{
    return this->guarded([&] { return snapshot{value_, version()}; });
}

template <class Threading>
std::uint64_t watch_state<Threading>::store_locked(node& n, ready_list& ready) noexcept
{
    if (is_closed())
        return 0;
    value_.swap(n);
    const std::uint64_t next = version() + 1;
    version_.store(next, std::memory_order_release);
    this->decide_all(ready, [](waiter& w) { w.grant(); });
    return next;
}

template <class Threading>
std::uint64_t watch_state<Threading>::store(node& n) noexcept
{
    return this->update([&](ready_list& ready) { return store_locked(n, ready); });
}

template <class Threading>
std::uint64_t watch_state<Threading>::store_if(std::uint64_t expected, node& n) noexcept
{
    return this->update(
        [&](ready_list& ready) { return version() == expected ? store_locked(n, ready) : 0; });
}

template <class Threading>
void watch_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        closed_.store(true, std::memory_order_release);
        this->decide_all(ready, [](waiter& w) { w.fail(errc::closed); });
    });
}

template <class Threading>
bool watch_state<Threading>::admit(waiter& w) noexcept
{
    w.decide(changed_since(static_cast<watch_waiter&>(w).seen));
    if (w.is_pending())
        this->queue_.push_back(w);
    return !w.is_pending();
}

template <class Threading>
bool watch_state<Threading>::wait_again(watch_waiter& w) noexcept
{
    return this->update([&](ready_list& ready) {
        if (!w.is_granted() || !this->reopen(w))
            return false;
        if (admit(w)) // a newer version exists, or the watch is closed
            ready.push_back(w);
        return true;
    });
}

template <class Threading>
void watch_predicate_waiter<Threading>::run(waiter& self, task_action action)
{
    auto& w = static_cast<watch_predicate_waiter&>(self);
    if (action == task_action::destroy || !w.waits_again())
        w.complete_(w, action);
}

// If this returns true, *this may already have completed on another thread.
template <class Threading>
bool watch_predicate_waiter<Threading>::waits_again() noexcept
{
    const auto state = state_; // the predicate may release the last other reference
    if (!state->is_due(*this))
        return false;
    const wait_decision decision = tester_->test(seen);
    if (decision.is_pending())
        return state->wait_again(*this);
    if (decision.is_refused())
        state->revoke(*this, decision);
    return false;
}

template class watch_state<thread_safe>;
template class watch_state<strand_confined>;
template class watch_predicate_waiter<thread_safe>;
template class watch_predicate_waiter<strand_confined>;

} // namespace turnstile::inline v0_1::detail
