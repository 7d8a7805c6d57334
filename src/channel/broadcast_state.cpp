// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/broadcast_state.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {

template <class Threading>
std::size_t broadcast_state<Threading>::checked(std::size_t capacity)
{
    throw_if(capacity == 0 ? make_error_code(errc::invalid_argument) : error_code(),
             "broadcast: capacity must not be 0");
    return capacity;
}

template <class Threading>
std::uint64_t broadcast_state<Threading>::unreserved(const broadcast_seat& seat) const noexcept
{
    if (abandoned_)
        return 0;
    return std::min<std::uint64_t>(sent_ - seat.next, ring_.size()) - seat.granted;
}

template <class Threading>
void broadcast_state<Threading>::serve(broadcast_seat& seat, ready_list& ready) noexcept
{
    if (seat.waiting.empty())
        return;
    for (std::uint64_t n = unreserved(seat); n != 0 && !seat.waiting.empty(); --n) {
        waiter& w = take_front(seat.waiting);
        ++seat.granted;
        w.grant();
        ready.push_back(w);
    }
    if (seat.waiting.empty())
        seat.unlink();
}

template <class Threading>
bool broadcast_state<Threading>::send(node& n, std::size_t& reached) noexcept
{
    return this->update([&](ready_list& ready) {
        if (is_closed())
            return false;
        reached = receivers();
        if (reached == 0)
            return true; // who comes later sees only what is sent later
        n.swap(ring_[sent_ % ring_.size()]);
        ++sent_;
        for_each_waiting([&](broadcast_seat& seat) { serve(seat, ready); });
        return true;
    });
}

template <class Threading>
template <class Decide>
void broadcast_state<Threading>::decide_waiting(broadcast_seat& seat, ready_list& ready,
                                                Decide decide) noexcept
{
    this->decide_each(seat.waiting, ready, decide);
    if (seat.is_linked())
        seat.unlink();
}

template <class Threading>
void broadcast_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        closed_.store(true, std::memory_order_release);
        for_each_waiting([&](broadcast_seat& seat) { end_if_drained(seat, ready); });
    });
}

// Whoever waits has had everything, once nothing that is on its way can be left to them.
template <class Threading>
void broadcast_state<Threading>::end_if_drained(broadcast_seat& seat, ready_list& ready) noexcept
{
    if (is_drained(seat))
        decide_waiting(seat, ready, [](waiter& w) { w.fail(errc::closed); });
}

template <class Threading>
void broadcast_state<Threading>::abandon_stream() noexcept
{
    std::vector<node> dropped;
    this->update([&](ready_list& ready) {
        if (is_closed())
            return; // receivers have the rest
        closed_.store(true, std::memory_order_release);
        abandoned_ = true;
        dropped.swap(ring_);
        this->decide_all(ready, [](waiter& w) { w.abort(); });
    });
}

template <class Threading>
void broadcast_state<Threading>::join(broadcast_seat& seat) noexcept
{
    this->guarded([&] {
        seat.next = sent_;
        receivers_.store(receivers() + 1, std::memory_order_release);
    });
}

template <class Threading>
void broadcast_state<Threading>::leave(broadcast_seat* seat) noexcept
{
    const bool last = this->update([&](ready_list& ready) {
        receivers_.store(receivers() - 1, std::memory_order_release);
        seat->gone = true;
        decide_waiting(*seat, ready, [](waiter& w) { w.abort(); });
        return seat->granted == 0;
    });
    if (last)
        delete seat;
}

template <class Threading>
std::uint64_t broadcast_state<Threading>::available(broadcast_seat& seat) noexcept
{
    return this->guarded([&] { return unreserved(seat); });
}

template <class Threading>
wait_decision broadcast_state<Threading>::reserve_locked(broadcast_seat& seat) noexcept
{
    if (unreserved(seat) != 0) {
        ++seat.granted;
        return wait_decision::granted();
    }
    return is_drained(seat) ? wait_decision::refused(errc::closed) : wait_decision::pending();
}

template <class Threading>
wait_decision broadcast_state<Threading>::reserve(broadcast_seat& seat) noexcept
{
    return this->guarded([&] { return reserve_locked(seat); });
}

template <class Threading>
void broadcast_state<Threading>::give_back(broadcast_seat& seat) noexcept
{
    this->update([&](ready_list& ready) { unreserve(seat, ready); });
}

template <class Threading>
bool broadcast_state<Threading>::take_reserved(broadcast_seat& seat, received& out) noexcept
{
    bool last = false;
    const bool taken = this->update([&](ready_list& ready) {
        --seat.granted;
        last = seat.gone && seat.granted == 0;
        if (seat.gone || abandoned_)
            return false;
        const std::uint64_t size = ring_.size();
        const std::uint64_t oldest = std::max(seat.next, sent_ < size ? 0 : sent_ - size);
        out.missed = oldest - seat.next;
        out.value = ring_[oldest % size];
        seat.next = oldest + 1;
        if (is_closed()) [[unlikely]]
            end_if_drained(seat, ready);
        return true;
    });
    if (last)
        delete &seat;
    return taken;
}

template <class Threading>
bool broadcast_state<Threading>::admit(waiter& w) noexcept
{
    broadcast_seat& seat = *static_cast<receive_waiter&>(w).seat;
    w.decide(reserve_locked(seat));
    if (!w.is_pending())
        return true;
    seat.waiting.push_back(w);
    if (!seat.is_linked())
        waiting_.push_back(seat);
    return false;
}

template <class Threading>
void broadcast_state<Threading>::remove(waiter& w) noexcept
{
    broadcast_seat& seat = *static_cast<receive_waiter&>(w).seat;
    w.waiter_hook::unlink();
    if (seat.waiting.empty())
        seat.unlink();
}

template <class Threading>
void broadcast_state<Threading>::unreserve(broadcast_seat& seat, ready_list& ready) noexcept
{
    --seat.granted;
    if (!seat.gone) {
        serve(seat, ready);
        end_if_drained(seat, ready);
    } else if (seat.granted == 0) {
        delete &seat;
    }
}

template <class Threading>
void broadcast_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    unreserve(*static_cast<receive_waiter&>(w).seat, ready);
}

template <class Threading>
void broadcast_state<Threading>::take_all(waiter_list& out) noexcept
{
    while (!waiting_.empty()) {
        broadcast_seat& seat = waiting_.front();
        out.splice(out.end(), seat.waiting);
        waiting_.pop_front();
    }
}

template class broadcast_state<thread_safe>;
template class broadcast_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
