// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/barrier_state.hpp>

#include <tuple>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release_order = std::memory_order_release;

} // namespace

template <class Threading>
std::exception_ptr barrier_state<Threading>::failure() noexcept
{
    return this->guarded([&] { return failure_; });
}

// Refused if no party can arrive, else pending.
template <class Threading>
wait_decision barrier_state<Threading>::refusal() const noexcept
{
    if (broken_.load(relaxed))
        return wait_decision::refused(errc::broken);
    return parties_.load(relaxed) == 0 ? wait_decision::refused(errc::closed)
                                       : wait_decision::pending();
}

template <class Threading>
bool barrier_state<Threading>::is_round_complete() const noexcept
{
    const std::size_t parties = parties_.load(relaxed);
    return parties == 0 ? all_dropped_ : arrived_.load(relaxed) >= parties;
}

// More parties than a round needs may have arrived while the previous round had ended.
template <class Threading>
void barrier_state<Threading>::end_round() noexcept
{
    const std::size_t arrived = arrived_.load(relaxed);
    const std::size_t parties = parties_.load(relaxed);
    if (arrived <= parties) {
        ended_round_.splice(ended_round_.end(), this->queue_);
        arrived_.store(0, release_order);
    } else {
        for (std::size_t i = 0; i != parties; ++i)
            ended_round_.push_back(take_front(this->queue_));
        arrived_.store(arrived - parties, release_order);
    }
    if (!ended_round_.empty())
        last_ended_arrival_ = static_cast<barrier_waiter&>(ended_round_.back()).arrival;
    all_dropped_ = false;
    has_ended_round_ = true;
    round_decision_ = wait_decision::granted();
}

// Grants the ended round, and returns its size.
template <class Threading>
std::size_t barrier_state<Threading>::grant_round(ready_list& ready) noexcept
{
    std::size_t index = 0;
    while (!ended_round_.empty()) {
        auto& w = static_cast<barrier_waiter&>(take_front(ended_round_));
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

// Called without the lock after end_round(): runs the action, then grants the round, and does the
// same for each round that has become complete meanwhile. Returns the decision of the first round,
// and in `index` its size.
template <class Threading>
wait_decision barrier_state<Threading>::finish_round(std::size_t& index) noexcept
{
    // The action may destroy the barrier, and so may a handler of the round.
    const wait_state_ptr<Threading> keep_alive(this);
    const auto finish = [&] {
        std::exception_ptr thrown = run_action();
        return this->update([&](ready_list& ready) {
            if (thrown) {
                std::swap(failure_, thrown);
                broken_.store(true, release_order);
                fail_all(ready);
            }
            const wait_decision round = round_decision_;
            const std::size_t size = grant_round(ready);
            has_ended_round_ = !broken_.load(relaxed) && is_round_complete();
            if (has_ended_round_)
                end_round();
            return std::tuple(round, size, has_ended_round_);
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
    bool ended = false;
    const wait_decision decision = this->update([&](ready_list& ready) {
        const wait_decision refused = refusal();
        if (!refused.is_pending() || has_ended_round_ ||
            arrived_.load(relaxed) + 1 != parties_.load(relaxed))
            return refused;
        end_round();
        if (action_) {
            ended = true;
        } else {
            index = grant_round(ready);
            has_ended_round_ = false;
        }
        return wait_decision::granted();
    });
    return ended ? finish_round(index) : decision;
}

template <class Threading>
void barrier_state<Threading>::start(waiter& w) noexcept
{
    bool completes_round = false;
    static_cast<barrier_waiter&>(w).completes_round = &completes_round;
    wait_state<Threading>::start(w); // this may destroy w
    if (completes_round) {
        const wait_state_ptr<Threading> keep_alive(this, false); // the reference of admit()
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
    self.arrival = ++arrivals_;
    this->queue_.push_back(w);
    const std::size_t arrived = arrived_.load(relaxed) + 1;
    arrived_.store(arrived, release_order);
    if (arrived >= parties_.load(relaxed) && !has_ended_round_) [[unlikely]] {
        end_round();
        *self.completes_round = true;
        intrusive_ptr_add_ref(this); // start() drops it after finish_round()
    }
    return false;
}

template <class Threading>
wait_decision barrier_state<Threading>::arrive_and_drop(std::size_t n) noexcept
{
    bool ended = false;
    const wait_decision decision = this->update([&](ready_list&) {
        const std::size_t parties = parties_.load(relaxed);
        const std::size_t arrived = arrived_.load(relaxed);
        if (parties == 0)
            return wait_decision::refused(errc::closed);
        if (n == 0 || arrived > parties || n > parties - arrived)
            return wait_decision::refused(errc::invalid_argument);
        parties_.store(parties - n, release_order);
        if (broken_.load(relaxed))
            return wait_decision::granted();
        all_dropped_ = n == parties;
        ended = !has_ended_round_ && is_round_complete();
        if (ended)
            end_round();
        return wait_decision::granted();
    });
    if (ended) {
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
void barrier_state<Threading>::fail_all(ready_list& ready) noexcept
{
    fail_ended_round(wait_decision::refused(errc::broken));
    fail(ended_round_, ready);
    fail(this->queue_, ready);
    arrived_.store(0, release_order);
}

// Gives the ended round, if there is one, this decision. It also holds for an arrival that is not
// in the list, because it has completed the round without waiting.
template <class Threading>
void barrier_state<Threading>::fail_ended_round(wait_decision decision) noexcept
{
    if (has_ended_round_ && round_decision_.is_granted())
        round_decision_ = decision;
}

template <class Threading>
void barrier_state<Threading>::reset() noexcept
{
    std::exception_ptr forgotten;
    this->update([&](ready_list& ready) {
        fail_all(ready);
        broken_.store(false, release_order);
        std::swap(failure_, forgotten);
    });
}

template <class Threading>
void barrier_state<Threading>::abort() noexcept
{
    this->update([&](ready_list& ready) {
        fail_all(ready);
        broken_.store(true, release_order);
    });
}

// The arrival of a cancelled waiter stays counted once its round has ended.
template <class Threading>
void barrier_state<Threading>::remove(waiter& w) noexcept
{
    w.waiter_hook::unlink();
    if (static_cast<barrier_waiter&>(w).arrival <= last_ended_arrival_)
        return;
    arrived_.store(arrived_.load(relaxed) - 1, release_order);
    if (cancelling_breaks_)
        broken_.store(true, release_order);
}

template <class Threading>
void barrier_state<Threading>::reconsider(ready_list& ready) noexcept
{
    if (!broken_.load(relaxed))
        return;
    fail(this->queue_, ready);
    arrived_.store(0, release_order);
}

template <class Threading>
void barrier_state<Threading>::take_all(waiter_list& out) noexcept
{
    fail_ended_round(wait_decision::aborted());
    out.splice(out.end(), ended_round_);
    wait_state<Threading>::take_all(out);
    arrived_.store(0, release_order);
}

template class barrier_state<thread_safe>;
template class barrier_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
