#include <turnstile/sync/detail/latch_state.hpp>

namespace turnstile::detail {

template <class Threading>
verdict latch_state<Threading>::count_down(std::uint64_t n) noexcept
{
    std::uint64_t now = count_.load(std::memory_order_relaxed);
    do {
        if (n > now)
            return verdict::refused(errc::negative_count);
    } while (!count_.compare_exchange_weak(now, now - n, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    if (now == n && n != 0)
        this->raise();
    return verdict::granted();
}

template <class Threading>
verdict latch_state<Threading>::try_arrive(std::uint64_t n) noexcept
{
    std::uint64_t now = count_.load(std::memory_order_relaxed);
    while (n == now && n != 0) {
        if (count_.compare_exchange_weak(now, 0, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
            this->raise();
            return verdict::granted();
        }
    }
    if (n > now)
        return verdict::refused(errc::negative_count);
    return n == 0 ? try_wait() : verdict::wait();
}

template <class Threading>
void latch_state<Threading>::start(latch_waiter& w) noexcept
{
    // Whoever goes with the last arrival may destroy the latch.
    const wait_state_ptr<Threading> keep_alive(this);
    if (w.arrivals != 0) {
        const verdict counted = count_down(w.arrivals);
        if (!counted.is_granted())
            w.decide(counted);
    }
    wait_state<Threading>::start(w);
}

template class latch_state<thread_safe>;
template class latch_state<strand_confined>;

} // namespace turnstile::detail
