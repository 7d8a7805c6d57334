#pragma once

#include <turnstile/core/detail/waiter.hpp>
#include <turnstile/resilience/detail/rate_levels.hpp>

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>

namespace turnstile::detail {

struct keyed_waiter;

// The bucket of one key, in one word: the time at which it is full again; or, while others
// wait for it, the first of them, who keeps that time meanwhile.
class key_slot {
public:
    keyed_waiter* head() const noexcept
    {
        return word_ & 1 ? reinterpret_cast<keyed_waiter*>(word_ - 1) : nullptr;
    }
    void set_head(keyed_waiter& w) noexcept { word_ = reinterpret_cast<std::uintptr_t>(&w) + 1; }
    // Only without a head.
    gcra::ticks full() const noexcept { return word_ >> 1; }
    void set_full(gcra::ticks full) noexcept { word_ = full << 1; }

private:
    static_assert(sizeof(std::uintptr_t) <= sizeof(std::uint64_t));
    std::uint64_t word_ = 0;
};

using due_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

struct keyed_waiter : waiter, due_hook {
    using waiter::waiter;
    std::uint64_t need = 1;
    nanoseconds deadline = nanoseconds::max();
    const void* key = nullptr;
    key_slot* slot = nullptr;
    rate_stamp stamp;

    // While it is the first to wait for its key.
    gcra::ticks full = 0;
    nanoseconds due{};
    std::uint64_t behind = 0; // what all the others need
    std::size_t length = 0;   // how many they are
    waiter_list line;         // the others
};

struct by_due {
    using type = nanoseconds;
    const nanoseconds& operator()(const keyed_waiter& w) const noexcept { return w.due; }
};

} // namespace turnstile::detail
