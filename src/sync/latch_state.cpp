// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/latch_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
wait_decision latch_state<Threading>::count_down(std::uint64_t n) noexcept
{
    std::uint64_t left = 0;
    const auto subtract = [&](std::uint64_t& count) noexcept {
        left = count - n;
        return n <= std::exchange(count, left);
    };
    if (!count_.update(subtract, std::memory_order_acq_rel))
        return wait_decision::refused(errc::negative_count);
    if (left == 0 && n != 0)
        this->set();
    return wait_decision::granted();
}

template <class Threading>
wait_decision latch_state<Threading>::try_arrive(std::uint64_t n) noexcept
{
    if (n == 0)
        return try_wait();
    std::uint64_t before = 0;
    const auto arrive_last = [&](std::uint64_t& count) noexcept {
        before = std::exchange(count, 0);
        return n == before;
    };
    if (count_.update(arrive_last, std::memory_order_acq_rel)) {
        this->set();
        return wait_decision::granted();
    }
    return n > before ? wait_decision::refused(errc::negative_count) : wait_decision::pending();
}

template <class Threading>
void latch_state<Threading>::start(waiter& w) noexcept
{
    // A handler that runs because of the last arrival may destroy the latch.
    const wait_state_ptr<Threading> keep_alive(this);
    if (const std::uint64_t arrivals = static_cast<latch_waiter&>(w).arrivals; arrivals != 0) {
        const wait_decision counted = count_down(arrivals);
        if (!counted.is_granted())
            w.decide(counted);
    }
    wait_state<Threading>::start(w);
}

template class latch_state<thread_safe>;
template class latch_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
