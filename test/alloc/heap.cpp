// SPDX-License-Identifier: BSL-1.0
#include "alloc/heap.hpp"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

constinit thread_local std::size_t count = 0;
constinit thread_local std::ptrdiff_t held = 0;
constinit thread_local std::size_t fail_from = never;
constinit thread_local std::size_t fail_to = never;
constinit thread_local bool failed = false;

bool may_allocate() noexcept
{
    const std::size_t index = count++;
    if (index < fail_from || index >= fail_to)
        return true;
    failed = true;
    return false;
}

void* allocate(std::size_t size) noexcept
{
    void* p = may_allocate() ? std::malloc(size != 0 ? size : 1) : nullptr;
    held += p ? 1 : 0;
    return p;
}

void release(void* p) noexcept
{
    held -= p ? 1 : 0;
    std::free(p);
}

} // namespace

std::size_t heap::allocations() noexcept { return count; }

std::ptrdiff_t heap::in_use() noexcept { return held; }

heap::failing::failing(std::size_t k, failure how) noexcept
{
    fail_from = count + k;
    fail_to = how == failure::once ? fail_from + 1 : never;
    failed = false;
}

bool heap::failing::happened() const noexcept { return failed; }

void heap::failing::stop() noexcept { fail_from = never; }

void* operator new(std::size_t size)
{
    if (void* p = allocate(size))
        return p;
    throw std::bad_alloc();
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }

void operator delete(void* p) noexcept { release(p); }

void operator delete(void* p, std::size_t) noexcept { release(p); }

#if !TURNSTILE_SANITIZED

extern "C" __attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment,
                                                                      std::size_t size) noexcept
{
    void* p = nullptr;
    if (!may_allocate() || posix_memalign(&p, alignment, size) != 0) {
        errno = ENOMEM;
        return nullptr;
    }
    return p;
}

#endif
