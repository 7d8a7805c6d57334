// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/semaphore_state.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {

// Functions that run under the lock first set `contended`: while it is clear, the fast paths change
// the word without the lock.

template <class Threading>
std::uint64_t semaphore_state<Threading>::set_flags(std::uint64_t which) noexcept
{
    return set_bits(word_, which) | which;
}

template <class Threading>
template <class Grant>
void semaphore_state<Threading>::serve_with(Grant grant) noexcept
{
    std::uint64_t word = set_flags(contended);
    while (!this->queue_.empty() && head().need <= word / one_permit) {
        word = with_handles(word - head().need * one_permit, handle_of_grant_);
        grant(take_front(this->queue_));
    }
    const bool busy = !this->queue_.empty() || withheld_ != 0;
    word_.store(busy ? word : word - contended, std::memory_order_release);
}

template <class Threading>
void semaphore_state<Threading>::serve(ready_list& ready) noexcept
{
    serve_with([&](waiter& w) {
        w.grant();
        ready.push_back(w);
    });
}

template <class Threading>
bool semaphore_state<Threading>::admit(waiter& w) noexcept
{
    if (word_.load(std::memory_order_acquire) & (closed | resized)) [[unlikely]] {
        w.decide(refusal(static_cast<semaphore_waiter&>(w).need));
        if (!w.is_pending())
            return true;
    }
    const bool first = this->queue_.empty();
    this->queue_.push_back(w);
    if (first)
        serve_newcomer();
    return !w.is_pending();
}

// Permits may have been released since the fast path failed. Not inlined, because under contention
// a newcomer is rarely the first waiter.
template <class Threading>
TURNSTILE_NOINLINE void semaphore_state<Threading>::serve_newcomer() noexcept
{
    serve_with([](waiter& only) { only.grant(); });
}

// The usual case of a contended release: no permits are available, and the first waiter needs
// exactly the n permits that are released. Grants them, and the handle, to that waiter and returns
// it; returns null in every other case.
template <class Threading>
inline waiter* semaphore_state<Threading>::hand_over(std::uint64_t n, std::uint64_t handle) noexcept
{
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    // Without `resized` no permits are withheld.
    if ((word & ~(all_handles - many_handles)) != contended || handle != handle_of_grant_ ||
        this->queue_.empty() || head().need != n)
        return nullptr;
    waiter& w = take_front(this->queue_);
    w.grant();
    if (this->queue_.empty())
        word_.store(word - contended, std::memory_order_release);
    return &w;
}

template <class Threading>
bool semaphore_state<Threading>::release_locked(std::uint64_t n, std::uint64_t handle,
                                                ready_list& ready) noexcept
{
    std::uint64_t word = with_handles(set_flags(contended), std::uint64_t(0) - handle);
    const std::uint64_t kept = std::min(n, withheld_);
    const bool fits = n - kept <= maximum_.load(std::memory_order_relaxed) - word / one_permit;
    if (fits) {
        withheld_ -= kept;
        word += (n - kept) * one_permit;
    }
    word_.store(word, std::memory_order_relaxed);
    serve(ready);
    if ((word & (orphaned | all_handles)) == orphaned && handle == one_handle)
        ready.drop_handles_reference();
    return fits;
}

template <class Threading>
bool semaphore_state<Threading>::release_contended(std::uint64_t n, std::uint64_t handle) noexcept
{
    this->lock();
    if (waiter* next = hand_over(n, handle)) [[likely]] {
        this->commit(*next);
        return true;
    }
    return release_to_queue(n, handle);
}

template <class Threading>
bool semaphore_state<Threading>::release_to_queue(std::uint64_t n, std::uint64_t handle) noexcept
{
    return this->update_locked([&](ready_list& ready) { return release_locked(n, handle, ready); });
}

template <class Threading>
bool semaphore_state<Threading>::unlock_without_handle() noexcept
{
    bool locked = false;
    const auto unlock_uncontended = [&](std::uint64_t& word) noexcept {
        if (word & flags)
            return false;
        locked = is_locked_without_handle(word);
        word += locked ? one_permit : 0;
        return true;
    };
    if (word_.update(unlock_uncontended, std::memory_order_acq_rel))
        return locked;
    return this->update([&](ready_list& ready) {
        if (is_locked_without_handle(set_flags(contended)))
            return release_locked(1, no_handle, ready);
        serve(ready);
        return false;
    });
}

template <class Threading>
bool semaphore_state<Threading>::adopt_lock() noexcept
{
    return this->update([&](ready_list& ready) {
        const std::uint64_t word = set_flags(contended);
        const bool locked = is_locked_without_handle(word);
        word_.store(locked ? word + one_handle : word, std::memory_order_relaxed);
        serve(ready);
        return locked;
    });
}

template <class Threading>
bool semaphore_state<Threading>::try_acquire_with_many_handles(std::uint64_t n,
                                                               std::uint64_t handle) noexcept
{
    const auto acquire = [n, handle](std::uint64_t& word) noexcept {
        if ((word & (contended | closed | orphaned)) != 0 || word / one_permit < n)
            return false;
        word = with_handles(word - n * one_permit, handle);
        return true;
    };
    return word_.update(acquire, std::memory_order_acquire);
}

template <class Threading>
void semaphore_state<Threading>::change_handles(std::uint64_t change) noexcept
{
    const auto change_uncontended = [change](std::uint64_t& word) noexcept {
        if (word & (contended | orphaned | many_handles))
            return false;
        word += change;
        return true;
    };
    if (word_.update(change_uncontended, std::memory_order_acq_rel))
        return;
    this->update([&](ready_list& ready) {
        const std::uint64_t word = with_handles(set_flags(contended), change);
        word_.store(word, std::memory_order_relaxed);
        serve(ready);
        if ((word & (orphaned | all_handles)) == orphaned)
            ready.drop_handles_reference();
    });
}

template <class Threading>
void semaphore_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    release_locked(static_cast<semaphore_waiter&>(w).need, handle_of_grant_, ready);
}

template <class Threading>
void semaphore_state<Threading>::return_handle(waiter& w, ready_list& ready) noexcept
{
    release_locked(static_cast<semaphore_waiter&>(w).need, handle_of_grant_, ready);
}

template <class Threading>
bool semaphore_state<Threading>::keep_for_handles() noexcept
{
    return (set_flags(orphaned) & all_handles) != 0;
}

template <class Threading>
void semaphore_state<Threading>::resize(std::uint64_t maximum) noexcept
{
    this->update([&](ready_list& ready) { set_maximum(maximum, ready); });
}

template <class Threading>
void semaphore_state<Threading>::set_maximum(std::uint64_t maximum, ready_list& ready) noexcept
{
    const std::uint64_t word = set_flags(contended | resized);
    const std::uint64_t old = maximum_.load(std::memory_order_relaxed);
    std::uint64_t permits = word / one_permit;
    if (maximum >= old) {
        const std::uint64_t more = maximum - old;
        const std::uint64_t kept = std::min(more, withheld_);
        withheld_ -= kept;
        permits += more - kept;
    } else {
        const std::uint64_t less = old - maximum;
        const std::uint64_t taken = std::min(less, permits);
        permits -= taken;
        withheld_ += less - taken;
    }
    maximum_.store(maximum, std::memory_order_release);
    word_.store(permits * one_permit | (word & (one_permit - 1)), std::memory_order_relaxed);

    for (auto it = this->queue_.begin(); it != this->queue_.end();) {
        waiter& w = *it++;
        if (static_cast<semaphore_waiter&>(w).need <= maximum)
            continue;
        w.waiter_hook::unlink();
        w.fail(errc::too_large);
        ready.push_back(w);
    }
    serve(ready);
}

template <class Threading>
void semaphore_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        set_flags(contended | closed);
        this->decide_all(ready, [](waiter& w) { w.fail(errc::closed); });
        serve(ready);
    });
}

template class semaphore_state<thread_safe>;
template class semaphore_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
