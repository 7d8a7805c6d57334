// SPDX-License-Identifier: BSL-1.0
// How often keys were used that are not in the cache: a count-min sketch of 4-bit counters, by the
// hashes of the keys. cache_eviction uses it to decide whether a key deserves to stay when it comes
// back. The frequency of a key that is in the cache is kept by its entry instead.
//
// A key has four counters, all of them in one block of 64 bytes. The estimate is the smallest one.
// Counters are only ever raised to a frequency, not incremented, so keys that share a counter do
// not add up: the estimate is never below what was recorded, and above it only if all four counters
// are shared with keys that are used more often.
//
// Invariant: halve() takes effect at once for every estimate. The table is halved a block at a time
// by the calls of continue_halving() that follow; the counters at and after `aged_` count as halved
// until it reaches them. Nothing fails for lack of memory: a sketch without a table estimates 0,
// and a table that cannot grow is less accurate.
#pragma once

#include <turnstile/core/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace turnstile::inline v0_1::detail {

class TURNSTILE_EXPORT frequency_sketch {
public:
    static constexpr unsigned max_frequency = 15;

    // Makes room for that many keys, unless memory is short. The estimates stay as they are.
    void reserve(std::size_t keys) noexcept;
    // The number of keys for which there is room.
    std::size_t room() const noexcept { return blocks_ * keys_in_block; }

    unsigned estimate(std::uint64_t hash) const noexcept;
    // Ensures that the estimate is at least `frequency`, which is at most max_frequency.
    void raise(std::uint64_t hash, unsigned frequency) noexcept;
    // Halves all estimates, rounded down.
    void halve() noexcept;
    // Halves a part of the table, if halve() has left any.
    void continue_halving() noexcept
    {
        if (aged_ != blocks_)
            halve_block();
    }

private:
    static constexpr std::size_t keys_in_block = 8;
    static constexpr std::size_t block_words = 8;
    struct alignas(64) block {
        std::uint64_t words[block_words] = {};
    };

    void halve_block() noexcept;

    std::unique_ptr<block[]> table_;
    std::size_t blocks_ = 0; // 0, or a power of two
    std::size_t aged_ = 0;   // the blocks before this one are halved; blocks_ if all are
};

} // namespace turnstile::inline v0_1::detail
