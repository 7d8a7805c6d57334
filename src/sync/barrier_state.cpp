// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/barrier_state.hpp>

#include <tuple>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;

} // namespace

template <class Threading>
std::exception_ptr barrier_state<Threading>::failure() noexcept
{
    return this->guarded([&] { return failure_; });
}

// Why nobody can arrive any more, if so.
template <class Threading>
wait_decision barrier_state<Threading>::refusal() const noexcept
{
    if (broken_.load(relaxed))
        return wait_decision::refused(errc::broken);
    return parties_.load(relaxed) == 0 ? wait_decision::refused(errc::closed)
                                       : wait_decision::pending();
}

template <class Threading>
bool barrier_state<Threading>::is_complete() const noexcept
{
    const std::size_t parties = parties_.load(relaxed);
    return parties == 0 ? all_dropped_ : arrived_.load(relaxed) >= parties;
}

// More than a round's worth may have arrived while the one before was closed.
template <class Threading>
void barrier_state<Threading>::close_round() noexcept
{
    const std::size_t arrived = arrived_.load(relaxed);
    const std::size_t parties = parties_.load(relaxed);
    if (arrived <= parties) {
        leaving_.splice(leaving_.end(), this->queue_);
        arrived_.store(0, release);
    } else {
        for (std::size_t i = 0; i != parties; ++i)
            leaving_.push_back(take_front(this->queue_));
        arrived_.store(arrived - parties, release);
    }
    if (!leaving_.empty())
        last_closed_ = static_cast<barrier_waiter&>(leaving_.back()).ticket;
    all_dropped_ = false;
    acting_ = true;
    round_ = wait_decision::granted();
}

// Lets the closed round go; how many there were.
template <class Threading>
std::size_t barrier_state<Threading>::release_round(ready_list& ready) noexcept
{
    std::size_t index = 0;
    while (!leaving_.empty()) {
        auto& w = static_cast<barrier_waiter&>(take_front(leaving_));
        w.index = index++;
        w.grant();
        ready.push_back(w);
    }
    return index;
}

template <class Threading>
std::exception_ptr barrier_state<Threading>::run_action() noexcept
{
    if (!action_)
        return nullptr;
    try {
        action_();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

// Without the lock, after close_round(): the action, then the release; and the same for the
// next round, if that has become complete meanwhile. What is returned goes for the first.
template <class Threading>
wait_decision barrier_state<Threading>::finish_round(std::size_t& index) noexcept
{
    // The action may destroy the barrier, and so may those who are let go.
    const wait_state_ptr<Threading> keep_alive(this);
    const auto finish = [&] {
        std::exception_ptr thrown = run_action();
        return this->update([&](ready_list& ready) {
            if (thrown) {
                std::swap(failure_, thrown);
                broken_.store(true, release);
                fail_everybody(ready);
            }
            const wait_decision round = round_;
            const std::size_t size = release_round(ready);
            acting_ = !broken_.load(relaxed) && is_complete();
            if (acting_)
                close_round();
            return std::tuple(round, size, acting_);
        });
    };

    auto [first, size, again] = finish();
    index = size;
    while (again)
        again = std::get<2>(finish());
    return first;
}

template <class Threading>
wait_decision barrier_state<Threading>::try_arrive_last(std::size_t& index) noexcept
{
    bool closed = false;
    const wait_decision decision = this->update([&](ready_list& ready) {
        const wait_decision refused = refusal();
        if (!refused.is_pending() || acting_ ||
            arrived_.load(relaxed) + 1 != parties_.load(relaxed))
            return refused;
        close_round();
        if (action_) {
            closed = true;
        } else {
            index = release_round(ready);
            acting_ = false;
        }
        return wait_decision::granted();
    });
    return closed ? finish_round(index) : decision;
}

template <class Threading>
void barrier_state<Threading>::start(waiter& w) noexcept
{
    bool is_last = false;
    static_cast<barrier_waiter&>(w).is_last = &is_last;
    wait_state<Threading>::start(w); // it may be gone after that
    if (is_last) {
        const wait_state_ptr<Threading> keep_alive(this, false); // since admit()
        std::size_t index = 0;
        finish_round(index);
    }
}

template <class Threading>
bool barrier_state<Threading>::admit(waiter& w) noexcept
{
    auto& self = static_cast<barrier_waiter&>(w);
    const wait_decision refused = refusal();
    w.decide(refused);
    if (!w.is_pending())
        return true;
    self.ticket = ++tickets_;
    this->queue_.push_back(w);
    const std::size_t arrived = arrived_.load(relaxed) + 1;
    arrived_.store(arrived, release);
    if (arrived >= parties_.load(relaxed) && !acting_) [[unlikely]] {
        close_round();
        *self.is_last = true;
        intrusive_ptr_add_ref(this); // until start() has seen to the round
    }
    return false;
}

template <class Threading>
wait_decision barrier_state<Threading>::arrive_and_drop(std::size_t n) noexcept
{
    bool closed = false;
    const wait_decision decision = this->update([&](ready_list&) {
        const std::size_t parties = parties_.load(relaxed);
        const std::size_t arrived = arrived_.load(relaxed);
        if (parties == 0)
            return wait_decision::refused(errc::closed);
        if (n == 0 || arrived > parties || n > parties - arrived)
            return wait_decision::refused(errc::invalid_argument);
        parties_.store(parties - n, release);
        if (broken_.load(relaxed))
            return wait_decision::granted();
        all_dropped_ = n == parties;
        closed = !acting_ && is_complete();
        if (closed)
            close_round();
        return wait_decision::granted();
    });
    if (closed) {
        std::size_t index = 0;
        finish_round(index);
    }
    return decision;
}

template <class Threading>
void barrier_state<Threading>::fail(waiter_list& waiters, ready_list& ready) noexcept
{
    this->decide_each(waiters, ready, [](waiter& w) { w.fail(errc::broken); });
}

template <class Threading>
void barrier_state<Threading>::fail_everybody(ready_list& ready) noexcept
{
    spoil_round(wait_decision::refused(errc::broken));
    fail(leaving_, ready);
    fail(this->queue_, ready);
    arrived_.store(0, release);
}

// The closed round, if there is one, ends so, for the last arrival as for those in leaving_.
template <class Threading>
void barrier_state<Threading>::spoil_round(wait_decision why) noexcept
{
    if (acting_ && round_.is_granted())
        round_ = why;
}

template <class Threading>
void barrier_state<Threading>::reset() noexcept
{
    std::exception_ptr forgotten;
    this->update([&](ready_list& ready) {
        fail_everybody(ready);
        broken_.store(false, release);
        std::swap(failure_, forgotten);
    });
}

template <class Threading>
void barrier_state<Threading>::abort() noexcept
{
    this->update([&](ready_list& ready) {
        fail_everybody(ready);
        broken_.store(true, release);
    });
}

// Once its round is closed, the arrival of a cancelled waiter stands.
template <class Threading>
void barrier_state<Threading>::remove(waiter& w) noexcept
{
    w.waiter_hook::unlink();
    if (static_cast<barrier_waiter&>(w).ticket <= last_closed_)
        return;
    arrived_.store(arrived_.load(relaxed) - 1, release);
    if (cancelling_breaks_)
        broken_.store(true, release);
}

template <class Threading>
void barrier_state<Threading>::reconsider(ready_list& ready) noexcept
{
    if (!broken_.load(relaxed))
        return;
    fail(this->queue_, ready);
    arrived_.store(0, release);
}

template <class Threading>
void barrier_state<Threading>::take_all(waiter_list& out) noexcept
{
    spoil_round(wait_decision::aborted());
    out.splice(out.end(), leaving_);
    wait_state<Threading>::take_all(out);
    arrived_.store(0, release);
}

template class barrier_state<thread_safe>;
template class barrier_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
