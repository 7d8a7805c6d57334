// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/eviction_history.hpp>

#include <limits>
#include <new>

namespace turnstile::inline v0_1::detail {

void eviction_history::set_depth(std::uint64_t depth) noexcept
{
    tick_ = depth / ticks_of_depth + 1;
    depth_ = depth / tick_;
}

void eviction_history::reserve(std::size_t keys) noexcept
{
    constexpr std::size_t most = std::size_t(1) << (std::numeric_limits<std::size_t>::digits / 2);
    std::size_t slots = 16;
    while (slots < most && slots < keys)
        slots *= 2;
    if (slots <= slots_)
        return;
    std::unique_ptr<slot[]> table(new (std::nothrow) slot[slots]);
    if (!table)
        return;
    table_ = std::move(table);
    slots_ = slots;
}

void eviction_history::record(std::uint64_t hash, std::uint64_t weight) noexcept
{
    clock_ += weight;
    if (slots_ != 0)
        slot_of(hash) = {tag_of(hash), now()};
}

bool eviction_history::take(std::uint64_t hash) noexcept
{
    if (slots_ == 0)
        return false;
    slot& s = slot_of(hash);
    if (s.tag != tag_of(hash))
        return false;
    s.tag = 0;
    return static_cast<std::uint16_t>(now() - s.time) < depth_;
}

} // namespace turnstile::inline v0_1::detail
