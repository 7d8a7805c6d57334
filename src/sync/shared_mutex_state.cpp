// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/shared_mutex_state.hpp>

namespace turnstile::inline v0_1::detail {
namespace {

shared_mutex_waiter* head_of(waiter_list& queue) noexcept
{
    return queue.empty() ? nullptr : static_cast<shared_mutex_waiter*>(&queue.front());
}

bool came_before(const shared_mutex_waiter* a, const shared_mutex_waiter* b) noexcept
{
    return a && (!b || a->arrival < b->arrival);
}

} // namespace

// Functions that run under the lock first set `contended`: while it is clear, the fast paths change
// the word without the lock.

// Returns the word without the flag.
template <class Threading>
auto shared_mutex_state<Threading>::set_contended() noexcept -> word_type
{
    return set_bits(word_, contended) & ~contended;
}

template <class Threading>
waiter_list& shared_mutex_state<Threading>::queue_of(const shared_mutex_waiter& w) noexcept
{
    if (w.held_mode != lock_mode::nothing)
        return upgrade_queue_;
    return w.wanted_mode == lock_mode::shared       ? reader_queue_
           : w.wanted_mode == lock_mode::upgradable ? upgradable_queue_
                                                    : this->queue_;
}

template <class Threading>
bool shared_mutex_state<Threading>::has_queued() const noexcept
{
    return !this->queue_.empty() || !reader_queue_.empty() || !upgradable_queue_.empty() ||
           !upgrade_queue_.empty();
}

// The waiter to grant next, upgrades excepted. A waiter waits only for earlier, incompatible
// requests: readers overtake waiters for the upgradable lock while another operation holds that.
template <class Threading>
shared_mutex_waiter* shared_mutex_state<Threading>::next_to_grant(word_type word) noexcept
{
    if (word & writer)
        return nullptr;
    shared_mutex_waiter* const w = head_of(this->queue_);
    shared_mutex_waiter* r = head_of(reader_queue_);
    if (shared_mutex_waiter* const u = word & upgrader ? nullptr : head_of(upgradable_queue_);
        came_before(u, r))
        r = u;

    const bool writer_first = w && (!r || preference_ == lock_preference::prefer_writers ||
                                    (preference_ == lock_preference::fair && came_before(w, r)));
    if (writer_first)
        return is_free_for(word, lock_mode::exclusive) ? w : nullptr;
    const bool upgrade_first =
        !upgrade_queue_.empty() && preference_ != lock_preference::prefer_readers;
    return !r || upgrade_first || !is_free_for(word, r->wanted_mode) ? nullptr : r;
}

// Decides every waiter that can be granted or refused, an upgrade first.
template <class Threading>
template <class Decided>
void shared_mutex_state<Threading>::serve_with(word_type word, Decided decided) noexcept
{
    if (shared_mutex_waiter* const w = head_of(upgrade_queue_)) {
        // The lock to upgrade may have been unlocked while the upgrade waited.
        const bool is_held = holds(word, w->held_mode, held_by::handle);
        if (!is_held || is_free_for(without(word, w->held_mode), w->wanted_mode)) {
            upgrade_queue_.pop_front();
            if (is_held) {
                word = with(without(word, w->held_mode), w->wanted_mode);
                w->grant();
            } else {
                w->fail(errc::not_locked);
            }
            decided(*w);
        }
    }
    while (shared_mutex_waiter* const w = next_to_grant(word)) {
        word = with(word, w->wanted_mode);
        queue_of(*w).pop_front();
        w->grant();
        decided(*w);
    }
    word_.store(word | (has_queued() ? contended : 0), std::memory_order_release);
}

template <class Threading>
void shared_mutex_state<Threading>::serve(word_type word, ready_list& ready) noexcept
{
    serve_with(word, [&](waiter& w) { ready.push_back(w); });
}

template <class Threading>
bool shared_mutex_state<Threading>::admit(waiter& queued) noexcept
{
    auto& w = static_cast<shared_mutex_waiter&>(queued);
    const word_type word = set_contended();
    // Each of two upgrades would wait for the other to unlock.
    if (w.held_mode != lock_mode::nothing && !upgrade_queue_.empty()) {
        w.fail(errc::upgrade_conflict);
        return true;
    }
    w.arrival = arrivals_++;
    queue_of(w).push_back(w);
    serve_with(word, [](waiter&) {}); // an arrival can only make its own grant possible
    return !w.is_pending();
}

template <class Threading>
void shared_mutex_state<Threading>::reconsider(ready_list& ready) noexcept
{
    serve(set_contended(), ready);
}

template <class Threading>
void shared_mutex_state<Threading>::take_back(waiter& queued, ready_list& ready) noexcept
{
    const auto& w = static_cast<shared_mutex_waiter&>(queued);
    release_locked(w.wanted_mode, w.held_mode, held_by::handle, ready);
}

template <class Threading>
void shared_mutex_state<Threading>::take_all(waiter_list& out) noexcept
{
    for (waiter_list* queue : {&upgrade_queue_, &this->queue_, &reader_queue_, &upgradable_queue_})
        out.splice(out.end(), *queue);
}

template <class Threading>
bool shared_mutex_state<Threading>::release_locked(lock_mode held, lock_mode kept, held_by owner,
                                                   ready_list& ready) noexcept
{
    const word_type word = set_contended();
    const bool is_held = holds(word, held, owner);
    const word_type left = is_held ? with(without(word, held, owner), kept, owner) : word;
    serve(left, ready);
    if ((left & orphaned) && left >> handles_shift == 0 && is_held && owner == held_by::handle)
        ready.drop_handles_reference();
    return is_held;
}

template <class Threading>
bool shared_mutex_state<Threading>::release_contended(lock_mode held, lock_mode kept, held_by owner,
                                                      const void* handle) noexcept
{
    return this->update([&](ready_list& ready) {
        fail_upgrade_of(handle, ready);
        return release_locked(held, kept, owner, ready);
    });
}

// Needed because the word alone does not show that `handle` was unlocked: other readers hold the
// same kind of lock.
template <class Threading>
void shared_mutex_state<Threading>::fail_upgrade_of(const void* handle, ready_list& ready) noexcept
{
    auto* const w = static_cast<upgrade_waiter*>(head_of(upgrade_queue_));
    if (!w || w->handle != handle)
        return;
    upgrade_queue_.pop_front();
    w->fail(errc::not_locked);
    ready.push_back(*w);
}

template <class Threading>
bool shared_mutex_state<Threading>::adopt(lock_mode mode) noexcept
{
    return this->update([&](ready_list& ready) {
        const word_type word = set_contended();
        const bool is_held = holds(word, mode, held_by::caller);
        serve(is_held ? word + (one(mode) << handles_shift) : word, ready);
        return is_held;
    });
}

template <class Threading>
void shared_mutex_state<Threading>::detach(lock_mode mode, const void* handle) noexcept
{
    this->update([&](ready_list& ready) {
        fail_upgrade_of(handle, ready);
        const word_type word = set_contended();
        if (!holds(word, mode, held_by::handle))
            return serve(word, ready);
        const word_type left = word - (one(mode) << handles_shift);
        serve(left, ready);
        if ((left & orphaned) && left >> handles_shift == 0)
            ready.drop_handles_reference();
    });
}

template <class Threading>
bool shared_mutex_state<Threading>::keep_for_handles() noexcept
{
    return set_bits(word_, orphaned) >> handles_shift != 0;
}

// For a reader that does not wait for waiting writers.
template <class Threading>
bool shared_mutex_state<Threading>::try_acquire_contended(lock_mode wanted, held_by owner) noexcept
{
    if (!is_free_for(word_.load(std::memory_order_acquire) & ~contended, wanted))
        return false; // without taking the lock
    return this->update([&](ready_list& ready) {
        const word_type word = set_contended();
        const bool granted = !(word & orphaned) && is_free_for(word, wanted);
        serve(granted ? with(word, wanted, owner) : word, ready);
        return granted;
    });
}

template class shared_mutex_state<thread_safe>;
template class shared_mutex_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
