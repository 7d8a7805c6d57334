// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/shared_mutex_state.hpp>

namespace turnstile::inline v0_1::detail {
namespace {

shared_waiter* head_of(waiter_list& line) noexcept
{
    return line.empty() ? nullptr : static_cast<shared_waiter*>(&line.front());
}

bool came_before(const shared_waiter* a, const shared_waiter* b) noexcept
{
    return a && (!b || a->ticket < b->ticket);
}

} // namespace

// Everything below runs under the lock. With `contended` set nobody else writes the word;
// without it the fast paths do, so the first step is always to set it.

// Returns what is held, without the flag.
template <class Threading>
auto shared_mutex_state<Threading>::contend() noexcept -> word_type
{
    return set_bits(word_, contended) & ~contended;
}

template <class Threading>
waiter_list& shared_mutex_state<Threading>::line_of(const shared_waiter& w) noexcept
{
    if (w.has != lock_mode::nothing)
        return upgrade_;
    return w.wants == lock_mode::shared       ? readers_
           : w.wants == lock_mode::upgradable ? upgraders_
                                              : this->queue_;
}

template <class Threading>
bool shared_mutex_state<Threading>::has_queued() const noexcept
{
    return !this->queue_.empty() || !readers_.empty() || !upgraders_.empty() || !upgrade_.empty();
}

// Who may go now, apart from an upgrade. Each waits for those before it that it cannot be
// inside together with, so readers pass those who wait for another's upgradable lock.
template <class Threading>
shared_waiter* shared_mutex_state<Threading>::next(word_type held) noexcept
{
    if (held & writer)
        return nullptr;
    shared_waiter* const w = head_of(this->queue_);
    shared_waiter* r = head_of(readers_);
    if (shared_waiter* const u = held & upgrader ? nullptr : head_of(upgraders_); came_before(u, r))
        r = u;

    const bool writer_first = w && (!r || preference_ == lock_preference::prefer_writers ||
                                    (preference_ == lock_preference::fair && came_before(w, r)));
    if (writer_first)
        return is_free_for(held, lock_mode::exclusive) ? w : nullptr;
    const bool barred = !upgrade_.empty() && preference_ != lock_preference::prefer_readers;
    return !r || barred || !is_free_for(held, r->wants) ? nullptr : r;
}

// Decides the fate of all who need not wait any longer, an upgrade before all others.
template <class Threading>
template <class Decided>
void shared_mutex_state<Threading>::serve_with(word_type held, Decided decided) noexcept
{
    if (shared_waiter* const w = head_of(upgrade_)) {
        // Not if it was unlocked meanwhile.
        const bool has_it = holds(held, w->has, way::as_handle);
        if (!has_it || is_free_for(without(held, w->has), w->wants)) {
            upgrade_.pop_front();
            if (has_it) {
                held = with(without(held, w->has), w->wants);
                w->grant();
            } else {
                w->fail(errc::not_locked);
            }
            decided(*w);
        }
    }
    while (shared_waiter* const w = next(held)) {
        held = with(held, w->wants);
        line_of(*w).pop_front();
        w->grant();
        decided(*w);
    }
    word_.store(held | (has_queued() ? contended : 0), std::memory_order_release);
}

template <class Threading>
void shared_mutex_state<Threading>::serve(word_type held, ready_list& ready) noexcept
{
    serve_with(held, [&](waiter& w) { ready.push_back(w); });
}

template <class Threading>
bool shared_mutex_state<Threading>::admit(waiter& queued) noexcept
{
    auto& w = static_cast<shared_waiter&>(queued);
    const word_type held = contend();
    // Each would wait for the other to let go.
    if (w.has != lock_mode::nothing && !upgrade_.empty()) {
        w.fail(errc::upgrade_conflict);
        return true;
    }
    w.ticket = arrivals_++;
    line_of(w).push_back(w);
    serve_with(held, [](waiter&) {}); // nobody but w can have become free to go
    return !w.is_pending();
}

template <class Threading>
void shared_mutex_state<Threading>::reconsider(ready_list& ready) noexcept
{
    serve(contend(), ready);
}

template <class Threading>
void shared_mutex_state<Threading>::take_back(waiter& queued, ready_list& ready) noexcept
{
    const auto& w = static_cast<shared_waiter&>(queued);
    give_locked(w.wants, w.has, way::as_handle, ready);
}

template <class Threading>
void shared_mutex_state<Threading>::take_all(waiter_list& out) noexcept
{
    for (waiter_list* line : {&upgrade_, &this->queue_, &readers_, &upgraders_})
        out.splice(out.end(), *line);
}

template <class Threading>
bool shared_mutex_state<Threading>::give_locked(lock_mode has, lock_mode keeps, way how,
                                                ready_list& ready) noexcept
{
    const word_type held = contend();
    const bool had_it = holds(held, has, how);
    const word_type left = had_it ? with(without(held, has, how), keeps, how) : held;
    serve(left, ready);
    if ((left & orphaned) && left >> handles_place == 0 && had_it && how == way::as_handle)
        ready.drop_handles_reference();
    return had_it;
}

template <class Threading>
bool shared_mutex_state<Threading>::give_contended(lock_mode has, lock_mode keeps, way how,
                                                   const void* handle) noexcept
{
    return this->update([&](ready_list& ready) {
        fail_upgrade_of(handle, ready);
        return give_locked(has, keeps, how, ready);
    });
}

// Other readers hold the same as `handle`: the word alone does not show that it was unlocked.
template <class Threading>
void shared_mutex_state<Threading>::fail_upgrade_of(const void* handle, ready_list& ready) noexcept
{
    auto* const w = static_cast<upgrade_waiter*>(head_of(upgrade_));
    if (!w || w->handle != handle)
        return;
    upgrade_.pop_front();
    w->fail(errc::not_locked);
    ready.push_back(*w);
}

template <class Threading>
bool shared_mutex_state<Threading>::adopt(lock_mode what) noexcept
{
    return this->update([&](ready_list& ready) {
        const word_type held = contend();
        const bool has_it = holds(held, what, way::by_hand);
        serve(has_it ? held + (part(what) << handles_place) : held, ready);
        return has_it;
    });
}

template <class Threading>
void shared_mutex_state<Threading>::detach(lock_mode what, const void* handle) noexcept
{
    this->update([&](ready_list& ready) {
        fail_upgrade_of(handle, ready);
        const word_type held = contend();
        if (!holds(held, what, way::as_handle))
            return serve(held, ready);
        const word_type left = held - (part(what) << handles_place);
        serve(left, ready);
        if ((left & orphaned) && left >> handles_place == 0)
            ready.drop_handles_reference();
    });
}

template <class Threading>
bool shared_mutex_state<Threading>::keep_for_handles() noexcept
{
    return set_bits(word_, orphaned) >> handles_place != 0;
}

// A reader that need not mind who waits.
template <class Threading>
bool shared_mutex_state<Threading>::try_contended(lock_mode wants, way how) noexcept
{
    if (!is_free_for(word_.load(std::memory_order_acquire) & ~contended, wants))
        return false; // that much is sure without the lock
    return this->update([&](ready_list& ready) {
        const word_type held = contend();
        const bool taken = !(held & orphaned) && is_free_for(held, wants);
        serve(taken ? with(held, wants, how) : held, ready);
        return taken;
    });
}

template class shared_mutex_state<thread_safe>;
template class shared_mutex_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
