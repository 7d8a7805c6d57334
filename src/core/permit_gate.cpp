#include <turnstile/core/detail/permit_gate.hpp>

#include <algorithm>

namespace turnstile::detail {

// Everything below runs under the lock. With `contended` set nobody else writes the word;
// without it the fast paths do, so the first step is always to set it.

template <class Threading>
std::uint64_t permit_gate<Threading>::set_flags(std::uint64_t flags) noexcept
{
    return set_bits(word_, flags) | flags;
}

template <class Threading>
template <class Grant>
void permit_gate<Threading>::serve_with(Grant grant) noexcept
{
    const std::uint64_t word = set_flags(contended);
    std::uint64_t permits = word / one;
    while (!this->queue_.empty() && head().need <= permits) {
        permits -= head().need;
        grant(take_front(this->queue_));
    }
    const bool busy = !this->queue_.empty() || withheld_ != 0;
    word_.store(permits * one | (word & (closed | resized)) | (busy ? contended : 0),
                std::memory_order_release);
}

template <class Threading>
void permit_gate<Threading>::serve(ready_list& ready) noexcept
{
    serve_with([&](waiter& w) {
        w.grant();
        ready.push_back(w);
    });
}

template <class Threading>
bool permit_gate<Threading>::admit(waiter& w) noexcept
{
    if (word_.load(std::memory_order_acquire) & (closed | resized)) [[unlikely]] {
        w.decide(explain(static_cast<permit_waiter&>(w).need));
        if (!w.undecided())
            return true;
    }
    const bool first = this->queue_.empty();
    this->queue_.push_back(w);
    if (first)
        serve_newcomer();
    return !w.undecided();
}

// Permits may have come back since the fast path looked. Not inlined: where many wait, hardly
// anybody is the first.
template <class Threading>
TURNSTILE_NOINLINE void permit_gate<Threading>::serve_newcomer() noexcept
{
    serve_with([](waiter& only) { only.grant(); });
}

// Who is to get n permits that come back, in the usual case: nothing is there, and they are
// just what the first in line waits for.
template <class Threading>
inline waiter* permit_gate<Threading>::hand_over(std::uint64_t n) noexcept
{
    // Nothing is withheld where nothing was resized.
    if (word_.load(std::memory_order_relaxed) != contended || this->queue_.empty() ||
        head().need != n)
        return nullptr;
    waiter& w = take_front(this->queue_);
    w.grant();
    if (this->queue_.empty())
        word_.store(0, std::memory_order_release);
    return &w;
}

template <class Threading>
bool permit_gate<Threading>::put(std::uint64_t n, ready_list& ready) noexcept
{
    const std::uint64_t word = set_flags(contended);
    const std::uint64_t permits = word / one;
    const std::uint64_t kept = std::min(n, withheld_);
    const bool fits = n - kept <= maximum_.load(std::memory_order_relaxed) - permits;
    if (fits) {
        withheld_ -= kept;
        word_.store(word + (n - kept) * one, std::memory_order_relaxed);
    }
    serve(ready);
    return fits;
}

template <class Threading>
bool permit_gate<Threading>::release_contended(std::uint64_t n) noexcept
{
    this->lock();
    if (waiter* next = hand_over(n)) [[likely]] {
        this->send(*next);
        return true;
    }
    return release_crowded(n);
}

template <class Threading>
bool permit_gate<Threading>::release_crowded(std::uint64_t n) noexcept
{
    return this->update_locked([&](ready_list& ready) { return put(n, ready); });
}

template <class Threading>
void permit_gate<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    put(static_cast<permit_waiter&>(w).need, ready);
}

template <class Threading>
void permit_gate<Threading>::resize(std::uint64_t maximum) noexcept
{
    this->update([&](ready_list& ready) { set_maximum(maximum, ready); });
}

template <class Threading>
void permit_gate<Threading>::set_maximum(std::uint64_t maximum, ready_list& ready) noexcept
{
    const std::uint64_t word = set_flags(contended | resized);
    const std::uint64_t old = maximum_.load(std::memory_order_relaxed);
    std::uint64_t permits = word / one;
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
    word_.store(permits * one | (word & (one - 1)), std::memory_order_relaxed);

    for (auto it = this->queue_.begin(); it != this->queue_.end();) {
        waiter& w = *it++;
        if (static_cast<permit_waiter&>(w).need <= maximum)
            continue;
        w.waiter_hook::unlink();
        w.fail(errc::too_large);
        ready.push_back(w);
    }
    serve(ready);
}

template <class Threading>
void permit_gate<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        set_flags(contended | closed);
        this->decide_all(ready, [](waiter& w) { w.fail(errc::closed); });
        serve(ready);
    });
}

template class permit_gate<thread_safe>;
template class permit_gate<strand_confined>;

} // namespace turnstile::detail
