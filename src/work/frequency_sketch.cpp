// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/frequency_sketch.hpp>

#include <algorithm>
#include <limits>
#include <new>

namespace turnstile::inline v0_1::detail {
namespace {

// Counter i of a key is in word 2i or 2i + 1 of its block. The bits of a hash choose: from the
// lowest, one word and one of 16 counters, five bits for each i; the block, from bit 32.
constexpr int counters_of_key = 4;

struct counter {
    std::size_t word;
    unsigned shift;
};

constexpr counter counter_of(std::uint64_t hash, int i) noexcept
{
    const auto bits = static_cast<unsigned>(hash >> (5 * i)) & 31U;
    return {static_cast<std::size_t>(2 * i) + (bits & 1U), (bits >> 1U) * 4};
}

constexpr std::uint64_t without_low_bits = 0x7777777777777777;

} // namespace

void frequency_sketch::reserve(std::size_t keys) noexcept
{
    constexpr std::size_t most = std::size_t(1) << (std::numeric_limits<std::size_t>::digits / 2);
    std::size_t blocks = std::max<std::size_t>(blocks_, 1);
    while (blocks < most && blocks * keys_in_block < keys)
        blocks *= 2;
    if (blocks == blocks_)
        return;
    std::unique_ptr<block[]> table(new (std::nothrow) block[blocks]);
    if (!table)
        return;
    // Where a key has moved to, its counters are those of the block that it comes from.
    while (aged_ != blocks_)
        halve_block();
    for (std::size_t i = 0; blocks_ != 0 && i != blocks; ++i)
        table[i] = table_[i & (blocks_ - 1)];
    table_ = std::move(table);
    blocks_ = blocks;
    aged_ = blocks;
}

unsigned frequency_sketch::estimate(std::uint64_t hash) const noexcept
{
    if (blocks_ == 0)
        return 0;
    const std::size_t place = static_cast<std::size_t>(hash >> 32) & (blocks_ - 1);
    const block& b = table_[place];
    unsigned least = max_frequency;
    for (int i = 0; i != counters_of_key; ++i) {
        const counter c = counter_of(hash, i);
        least = std::min(least, static_cast<unsigned>(b.words[c.word] >> c.shift) & max_frequency);
    }
    return place < aged_ ? least : least / 2;
}

void frequency_sketch::raise(std::uint64_t hash, unsigned frequency) noexcept
{
    if (blocks_ == 0)
        return;
    const std::size_t place = static_cast<std::size_t>(hash >> 32) & (blocks_ - 1);
    block& b = table_[place];
    if (place >= aged_)
        frequency = std::min(2 * frequency, max_frequency);
    for (int i = 0; i != counters_of_key; ++i) {
        const counter c = counter_of(hash, i);
        std::uint64_t& word = b.words[c.word];
        if ((static_cast<unsigned>(word >> c.shift) & max_frequency) >= frequency)
            continue;
        word &= ~(std::uint64_t(max_frequency) << c.shift);
        word |= std::uint64_t(frequency) << c.shift;
    }
}

void frequency_sketch::halve() noexcept
{
    while (aged_ != blocks_)
        halve_block();
    aged_ = 0;
}

void frequency_sketch::halve_block() noexcept
{
    for (std::uint64_t& word : table_[aged_].words)
        word = (word >> 1U) & without_low_bits;
    ++aged_;
}

} // namespace turnstile::inline v0_1::detail
