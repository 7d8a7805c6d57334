// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/block_cache.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace detail = turnstile::detail;

BOOST_AUTO_TEST_SUITE(block_cache)

BOOST_AUTO_TEST_CASE(a_freed_block_is_used_again_for_the_same_size)
{
    void* const first = detail::allocate_block(200);
    std::memset(first, 1, 200);
    detail::free_block(first, 200);
    void* const second = detail::allocate_block(193); // the same step of 64 bytes
    if constexpr (TURNSTILE_KEEPS_FRAMES != 0)
        BOOST_TEST(second == first);
    void* const third = detail::allocate_block(200);
    BOOST_TEST(third != second);
    detail::free_block(second, 193);
    detail::free_block(third, 200);
}

BOOST_AUTO_TEST_CASE(blocks_of_all_sizes_can_be_freed_on_another_thread)
{
    std::vector<void*> blocks;
    for (std::size_t size = 0; size != 3000; ++size)
        blocks.push_back(detail::allocate_block(size));
    std::thread([&] {
        for (std::size_t size = 0; size != 3000; ++size)
            detail::free_block(blocks[size], size);
    }).join();
}

BOOST_AUTO_TEST_CASE(large_alignments_are_kept)
{
    struct alignas(128) large {
        char c[128];
    };
    detail::cached_allocator<large> allocator;
    large* const p = allocator.allocate(1);
    BOOST_TEST(reinterpret_cast<std::size_t>(p) % 128 == 0u);
    allocator.deallocate(p, 1);
    BOOST_TEST((allocator == detail::cached_allocator<int>()));
}

BOOST_AUTO_TEST_SUITE_END()
