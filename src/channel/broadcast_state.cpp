// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/broadcast_state.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {

template <class Threading>
std::uint64_t broadcast_state<Threading>::unreserved(const broadcast_subscription& s) const noexcept
{
    if (abandoned_)
        return 0;
    return std::min<std::uint64_t>(sent_ - s.next, ring_.size()) - s.reserved;
}

template <class Threading>
void broadcast_state<Threading>::grant_receives(broadcast_subscription& s,
                                                ready_list& ready) noexcept
{
    if (s.receives.empty())
        return;
    for (std::uint64_t n = unreserved(s); n != 0 && !s.receives.empty(); --n) {
        waiter& w = take_front(s.receives);
        --s.waiting;
        ++s.reserved;
        w.grant();
        ready.push_back(w);
    }
    if (s.receives.empty())
        s.unlink();
}

template <class Threading>
bool broadcast_state<Threading>::send(node& n, std::size_t& receivers_reached) noexcept
{
    return this->update([&](ready_list& ready) {
        if (is_closed())
            return false;
        receivers_reached = receivers();
        if (receivers_reached == 0)
            return true; // a later receiver gets only later values
        n.swap(ring_[sent_ % ring_.size()]);
        ++sent_;
        for_each_waiting([&](broadcast_subscription& s) { grant_receives(s, ready); });
        return true;
    });
}

template <class Threading>
template <class Decide>
void broadcast_state<Threading>::decide_receives(broadcast_subscription& s, ready_list& ready,
                                                 Decide decide) noexcept
{
    s.waiting = 0;
    this->decide_each(s.receives, ready, decide);
    if (s.is_linked())
        s.unlink();
}

template <class Threading>
void broadcast_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        closed_.store(true, std::memory_order_release);
        for_each_waiting([&](broadcast_subscription& s) { end_if_drained(s, ready); });
    });
}

template <class Threading>
void broadcast_state<Threading>::end_if_drained(broadcast_subscription& s,
                                                ready_list& ready) noexcept
{
    if (is_drained(s))
        decide_receives(s, ready, [](waiter& w) { w.fail(errc::closed); });
}

template <class Threading>
void broadcast_state<Threading>::abandon_stream() noexcept
{
    std::vector<node> dropped;
    this->update([&](ready_list& ready) {
        if (is_closed())
            return; // the receivers keep the values that are left
        closed_.store(true, std::memory_order_release);
        abandoned_ = true;
        dropped.swap(ring_);
        this->decide_all(ready, [](waiter& w) { w.abort(); });
    });
}

template <class Threading>
void broadcast_state<Threading>::add_subscription(broadcast_subscription& s) noexcept
{
    this->guarded([&] {
        s.next = sent_;
        receivers_.store(receivers() + 1, std::memory_order_release);
    });
}

template <class Threading>
void broadcast_state<Threading>::remove_subscription(broadcast_subscription* s) noexcept
{
    const bool last = this->update([&](ready_list& ready) {
        receivers_.store(receivers() - 1, std::memory_order_release);
        s->receiver_gone = true;
        decide_receives(*s, ready, [](waiter& w) { w.abort(); });
        return s->reserved == 0;
    });
    if (last)
        delete s;
}

template <class Threading>
std::uint64_t broadcast_state<Threading>::available(broadcast_subscription& s) noexcept
{
    return this->guarded([&] { return unreserved(s); });
}

template <class Threading>
std::size_t broadcast_state<Threading>::waiting_receives(const broadcast_subscription& s) noexcept
{
    return this->guarded([&] { return s.waiting; });
}

template <class Threading>
wait_decision broadcast_state<Threading>::reserve_locked(broadcast_subscription& s) noexcept
{
    if (unreserved(s) != 0) {
        ++s.reserved;
        return wait_decision::granted();
    }
    return is_drained(s) ? wait_decision::refused(errc::closed) : wait_decision::pending();
}

template <class Threading>
wait_decision broadcast_state<Threading>::reserve(broadcast_subscription& s) noexcept
{
    return this->guarded([&] { return reserve_locked(s); });
}

template <class Threading>
void broadcast_state<Threading>::give_back(broadcast_subscription& s) noexcept
{
    this->update([&](ready_list& ready) { unreserve(s, ready); });
}

template <class Threading>
bool broadcast_state<Threading>::take_reserved(broadcast_subscription& s, received& out) noexcept
{
    bool last = false;
    const bool taken = this->update([&](ready_list& ready) {
        --s.reserved;
        last = s.receiver_gone && s.reserved == 0;
        if (s.receiver_gone || abandoned_)
            return false;
        const std::uint64_t size = ring_.size();
        const std::uint64_t oldest = std::max(s.next, sent_ < size ? 0 : sent_ - size);
        out.missed = oldest - s.next;
        out.value = ring_[oldest % size];
        s.next = oldest + 1;
        if (is_closed()) [[unlikely]]
            end_if_drained(s, ready);
        return true;
    });
    if (last)
        delete &s;
    return taken;
}

template <class Threading>
bool broadcast_state<Threading>::admit(waiter& w) noexcept
{
    broadcast_subscription& s = *static_cast<broadcast_waiter&>(w).subscription;
    w.decide(reserve_locked(s));
    if (!w.is_pending())
        return true;
    s.receives.push_back(w);
    ++s.waiting;
    if (!s.is_linked())
        waiting_subscriptions_.push_back(s);
    return false;
}

template <class Threading>
void broadcast_state<Threading>::remove(waiter& w) noexcept
{
    broadcast_subscription& s = *static_cast<broadcast_waiter&>(w).subscription;
    w.waiter_hook::unlink();
    --s.waiting;
    if (s.receives.empty())
        s.unlink();
}

template <class Threading>
void broadcast_state<Threading>::unreserve(broadcast_subscription& s, ready_list& ready) noexcept
{
    --s.reserved;
    if (!s.receiver_gone) {
        grant_receives(s, ready);
        end_if_drained(s, ready);
    } else if (s.reserved == 0) {
        delete &s;
    }
}

template <class Threading>
void broadcast_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    unreserve(*static_cast<broadcast_waiter&>(w).subscription, ready);
}

template <class Threading>
void broadcast_state<Threading>::take_all(waiter_list& out) noexcept
{
    while (!waiting_subscriptions_.empty()) {
        broadcast_subscription& s = waiting_subscriptions_.front();
        out.splice(out.end(), s.receives);
        s.waiting = 0;
        waiting_subscriptions_.pop_front();
    }
}

template class broadcast_state<thread_safe>;
template class broadcast_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
