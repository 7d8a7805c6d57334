// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/oneshot_state.hpp>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr auto grant = [](waiter& w) { w.grant(); };
constexpr auto abort = [](waiter& w) { w.abort(); };
constexpr auto fail_with(errc code) noexcept
{
    return [code](waiter& w) { w.fail(code); };
}

} // namespace

template <class Threading>
wait_decision oneshot_state<Threading>::send_decision() const noexcept
{
    if (!receiver_open_)
        return wait_decision::refused(errc::closed);
    return phase_ == phase::open ? wait_decision::granted()
                                 : wait_decision::refused(errc::rejected);
}

template <class Threading>
wait_decision oneshot_state<Threading>::receive_decision() const noexcept
{
    switch (phase_) {
    case phase::full:
    case phase::failed:
        return wait_decision::granted();
    case phase::sender_gone:
        return wait_decision::refused(errc::sender_gone);
    case phase::taken:
        return wait_decision::refused(errc::closed);
    case phase::open:
    case phase::reserved:
        break;
    }
    return receiver_open_ || phase_ == phase::reserved ? wait_decision::pending()
                                                       : wait_decision::refused(errc::closed);
}

template <class Threading>
wait_decision oneshot_state<Threading>::reserve_locked() noexcept
{
    const wait_decision decision = receive_decision();
    if (phase_ == phase::full)
        phase_ = phase::reserved;
    return decision;
}

template <class Threading>
wait_decision oneshot_state<Threading>::peek() noexcept
{
    return this->guarded([&] { return receive_decision(); });
}

template <class Threading>
wait_decision oneshot_state<Threading>::reserve() noexcept
{
    return this->guarded([&] { return reserve_locked(); });
}

template <class Threading>
void oneshot_state<Threading>::offer_value(ready_list& ready) noexcept
{
    phase_ = phase::full;
    if (this->queue_.empty())
        return;
    phase_ = phase::reserved;
    waiter& w = take_front(this->queue_);
    w.grant();
    ready.push_back(w);
}

template <class Threading>
void oneshot_state<Threading>::unreserve(ready_list& ready) noexcept
{
    if (phase_ == phase::reserved)
        offer_value(ready);
}

template <class Threading>
void oneshot_state<Threading>::give_back() noexcept
{
    this->update([&](ready_list& ready) { unreserve(ready); });
}

template <class Threading>
error_code oneshot_state<Threading>::conclude_receive(ready_list& ready) noexcept
{
    if (!receiver_alive_)
        return asio::error::operation_aborted;
    if (phase_ == phase::failed)
        return error_;
    phase_ = phase::taken;
    this->decide_each(this->queue_, ready, fail_with(errc::closed));
    return {};
}

template <class Threading>
error_code oneshot_state<Threading>::can_send() noexcept
{
    return this->guarded([&] { return send_decision().error(); });
}

template <class Threading>
error_code oneshot_state<Threading>::send_error(const error_code& error) noexcept
{
    if (!error)
        return errc::invalid_argument;
    return this->update([&](ready_list& ready) {
        const wait_decision decision = send_decision();
        if (decision.is_granted()) {
            phase_ = phase::failed;
            error_ = error;
            this->decide_each(this->queue_, ready, grant);
        }
        return decision.error();
    });
}

template <class Threading>
void oneshot_state<Threading>::leave_sender() noexcept
{
    this->update([&](ready_list& ready) {
        sender_alive_ = false;
        decide_sender_waits(ready, abort);
        if (phase_ == phase::open) {
            phase_ = phase::sender_gone;
            this->decide_each(this->queue_, ready, fail_with(errc::sender_gone));
        }
    });
}

template <class Threading>
wait_decision oneshot_state<Threading>::receiver_gone() noexcept
{
    return this->guarded(
        [&] { return receiver_open_ ? wait_decision::pending() : wait_decision::granted(); });
}

template <class Threading>
error_code oneshot_state<Threading>::conclude_receiver_gone() noexcept
{
    return this->guarded(
        [&] { return sender_alive_ ? error_code() : error_code(asio::error::operation_aborted); });
}

template <class Threading>
std::size_t oneshot_state<Threading>::waiting_at_sender() noexcept
{
    return this->guarded([&] { return sender_waits_; });
}

template <class Threading>
std::size_t oneshot_state<Threading>::waiting_at_receiver() noexcept
{
    return this->guarded([&] { return this->waiters() - sender_waits_; });
}

template <class Threading>
template <class Decide>
void oneshot_state<Threading>::decide_sender_waits(ready_list& ready, Decide decide) noexcept
{
    sender_waits_ = 0;
    this->decide_each(sender_queue_, ready, decide);
}

template <class Threading>
void oneshot_state<Threading>::close_receiver(ready_list& ready) noexcept
{
    receiver_open_ = false;
    decide_sender_waits(ready, grant);
}

template <class Threading>
void oneshot_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        close_receiver(ready);
        if (phase_ == phase::open)
            this->decide_each(this->queue_, ready, fail_with(errc::closed));
    });
}

template <class Threading>
bool oneshot_state<Threading>::drop_receiver(ready_list& ready) noexcept
{
    receiver_alive_ = false;
    close_receiver(ready);
    this->decide_each(this->queue_, ready, abort);
    const bool unused = phase_ == phase::full || phase_ == phase::reserved;
    if (unused)
        phase_ = phase::taken;
    return unused;
}

template <class Threading>
bool oneshot_state<Threading>::admit(waiter& w) noexcept
{
    const bool is_at_sender = static_cast<oneshot_waiter&>(w).is_at_sender;
    w.decide(!is_at_sender    ? reserve_locked()
             : receiver_open_ ? wait_decision::pending()
                              : wait_decision::granted());
    if (!w.is_pending())
        return true;
    (is_at_sender ? sender_queue_ : this->queue_).push_back(w);
    sender_waits_ += is_at_sender ? 1 : 0;
    return false;
}

template <class Threading>
void oneshot_state<Threading>::remove(waiter& w) noexcept
{
    w.waiter_hook::unlink();
    sender_waits_ -= static_cast<oneshot_waiter&>(w).is_at_sender ? 1 : 0;
}

template <class Threading>
void oneshot_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    if (!static_cast<oneshot_waiter&>(w).is_at_sender)
        unreserve(ready);
}

template <class Threading>
void oneshot_state<Threading>::take_all(waiter_list& out) noexcept
{
    out.splice(out.end(), this->queue_);
    out.splice(out.end(), sender_queue_);
    sender_waits_ = 0;
}

template class oneshot_state<thread_safe>;
template class oneshot_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
