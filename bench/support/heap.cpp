// SPDX-License-Identifier: BSL-1.0
#include "heap.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

// One counter for each thread, so that counting needs no locked instruction. A later thread takes
// over the counter of a thread that has ended.
constexpr std::size_t slots = 64;
struct alignas(64) counter {
    std::atomic<std::uint64_t> value{0};
};
constinit std::array<counter, slots> counters{};
constinit std::atomic<std::size_t> threads{0};
constinit thread_local counter* mine = nullptr;

[[maybe_unused]] void count() noexcept
{
    if (mine == nullptr)
        mine = &counters[threads.fetch_add(1, std::memory_order_relaxed) % slots];
    mine->value.store(mine->value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

} // namespace

std::uint64_t bench::heap::allocations() noexcept
{
    std::uint64_t sum = 0;
    for (const counter& c : counters)
        sum += c.value.load(std::memory_order_relaxed);
    return sum;
}

#ifdef __GLIBC__

#    include <malloc.h>

std::size_t bench::heap::bytes_in_use() noexcept
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// The names are glibc's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// These replace the functions of the C library; free() is not replaced.
extern "C" {

__attribute__((visibility("default"))) void* malloc(std::size_t size) noexcept
{
    count();
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void* calloc(std::size_t nmemb, std::size_t size) noexcept
{
    count();
    return __libc_calloc(nmemb, size);
}

__attribute__((visibility("default"))) void* realloc(void* ptr, std::size_t size) noexcept
{
    count();
    return __libc_realloc(ptr, size);
}

__attribute__((visibility("default"))) void* memalign(std::size_t alignment,
                                                      std::size_t size) noexcept
{
    count();
    return __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment,
                                                           std::size_t size) noexcept
{
    return memalign(alignment, size);
}

__attribute__((visibility("default"))) int posix_memalign(void** memptr, std::size_t alignment,
                                                          std::size_t size) noexcept
{
    void* p = memalign(alignment, size);
    if (p == nullptr)
        return ENOMEM;
    *memptr = p;
    return 0;
}

} // extern "C"

#else

std::size_t bench::heap::bytes_in_use() noexcept { return 0; }

#endif
