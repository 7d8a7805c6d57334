// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/block_cache.hpp>

#include <array>
#include <utility>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr std::size_t step = 64;
constexpr std::size_t sizes = 32;
constexpr std::size_t most_bytes = 32 * 1024;

struct free_list {
    void* first = nullptr; // each block begins with a pointer to the next
    std::size_t bytes = 0;
};

// The address sanitizer is to detect uses of freed blocks.
constexpr bool keeps_blocks = TURNSTILE_KEEPS_FRAMES != 0;

struct thread_blocks {
    std::array<free_list, sizes> lists;

    constexpr thread_blocks() noexcept = default;
    thread_blocks(const thread_blocks&) = delete;
    thread_blocks& operator=(const thread_blocks&) = delete;
    ~thread_blocks();
};

constinit thread_local bool has_ended = false;
constinit thread_local thread_blocks blocks;

thread_blocks::~thread_blocks()
{
    has_ended = true;
    for (free_list& list : lists) {
        while (list.first)
            ::operator delete(std::exchange(list.first, *static_cast<void**>(list.first)));
    }
}

constexpr std::size_t index_of(std::size_t size) noexcept
{
    return size == 0 ? 0 : (size - 1) / step;
}

} // namespace

void* allocate_block(std::size_t size)
{
    const std::size_t index = index_of(size);
    if (!keeps_blocks || index >= sizes || has_ended)
        return ::operator new(size);
    free_list& list = blocks.lists[index];
    if (!list.first)
        return ::operator new((index + 1) * step);
    list.bytes -= (index + 1) * step;
    return std::exchange(list.first, *static_cast<void**>(list.first));
}

void free_block(void* block, std::size_t size) noexcept
{
    const std::size_t index = index_of(size);
    if (!keeps_blocks || index >= sizes || has_ended || blocks.lists[index].bytes >= most_bytes)
        return ::operator delete(block);
    free_list& list = blocks.lists[index];
    *static_cast<void**>(block) = std::exchange(list.first, block);
    list.bytes += (index + 1) * step;
}

} // namespace turnstile::inline v0_1::detail
