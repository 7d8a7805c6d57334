// SPDX-License-Identifier: BSL-1.0
// The keys that were evicted from the window of cache_eviction recently. If such a key comes back,
// a larger window would have had it. A key is known by 16 bits of its hash, in a table in which a
// later key replaces an earlier one: the answer is an estimate for window_climber, and nothing else
// depends on it.
//
// Time is the weight of the evictions so far. So a key that left less than `depth` ago would be in
// a window that is larger by `depth`.
//
// Nothing fails for lack of memory: without a table every answer is no.
#pragma once

#include <turnstile/core/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace turnstile::inline v0_1::detail {

class TURNSTILE_EXPORT eviction_history {
public:
    // How far back it looks.
    void set_depth(std::uint64_t depth) noexcept;
    // Makes room for that many keys, unless memory is short, and forgets all if it does.
    void reserve(std::size_t keys) noexcept;
    std::size_t room() const noexcept { return slots_; }

    void record(std::uint64_t hash, std::uint64_t weight) noexcept;
    // Returns whether the key was evicted less than `depth` ago, and forgets it.
    bool take(std::uint64_t hash) noexcept;

private:
    static constexpr std::uint64_t ticks_of_depth = 256;
    struct slot {
        std::uint16_t tag = 0; // 0 if it is empty
        std::uint16_t time = 0;
    };

    slot& slot_of(std::uint64_t hash) noexcept
    {
        return table_[static_cast<std::size_t>(hash >> 32) & (slots_ - 1)];
    }
    static std::uint16_t tag_of(std::uint64_t hash) noexcept
    {
        return static_cast<std::uint16_t>((hash & 0xffff) | 1);
    }
    std::uint16_t now() const noexcept { return static_cast<std::uint16_t>(clock_ / tick_); }

    std::unique_ptr<slot[]> table_;
    std::size_t slots_ = 0; // 0, or a power of two
    std::uint64_t clock_ = 0;
    std::uint64_t tick_ = 1;
    std::uint64_t depth_ = 0; // in ticks
};

} // namespace turnstile::inline v0_1::detail
