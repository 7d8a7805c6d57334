#pragma once

#include <turnstile/core/detail/waiter.hpp>
#include <turnstile/resilience/detail/rate_levels.hpp>

#include <cstdint>

namespace turnstile::detail {

// One who waits for permits of a rate limiter.
struct rate_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
    nanoseconds deadline = nanoseconds::max();
    rate_stamp stamp;
    bool is_claim = false;
};

// A reservation's place in the queue. It is granted nothing: it is charged when its turn has
// come, but not before the time its holder was told, since that is when the permits are used.
struct rate_claim : rate_waiter {
    rate_claim() noexcept : rate_waiter([](waiter&, how) {}) { is_claim = true; }
    nanoseconds ready_at{};
    bool charged = false;
    bool dropped = false; // by its holder: it is the queue's own
};

} // namespace turnstile::detail
