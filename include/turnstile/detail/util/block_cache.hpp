// SPDX-License-Identifier: BSL-1.0
// Memory for blocks that live for the time of a call: cached_allocator keeps freed blocks for the
// next call of the same thread. Asio's recycling allocator keeps two blocks for each purpose; a
// call that runs several operations has more of them at the same time. The work layer uses it for
// races, for their operations, for the children of groups, and for the queue of a serial_executor.
//
// Blocks are kept by their size in steps of 64 bytes, up to 2 KiB, and at most 32 KiB of each size.
// Larger blocks, and those with a larger alignment than new has, go to the heap.
//
// Invariant: a block belongs to the thread that frees it. The blocks of a thread are freed when it
// ends; a block that is freed after that goes to the heap.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <cstddef>
#include <memory>
#include <new>

namespace turnstile::inline v0_1::detail {

// Blocks of the alignment of operator new. The size is passed back when a block is freed.
TURNSTILE_EXPORT void* allocate_block(std::size_t size);
TURNSTILE_EXPORT void free_block(void* block, std::size_t size) noexcept;

// An executor is passed a cached_allocator<void>, which it rebinds.
template <class T>
class cached_allocator {
public:
    using value_type = T;
    template <class U>
    struct rebind {
        using other = cached_allocator<U>;
    };

    constexpr cached_allocator() noexcept = default;
    template <class U>
    constexpr cached_allocator(const cached_allocator<U>&) noexcept
    {
    }

    T* allocate(std::size_t n)
    {
        if constexpr (has_large_alignment())
            return std::allocator<T>().allocate(n);
        else
            return static_cast<T*>(allocate_block(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept
    {
        if constexpr (has_large_alignment())
            std::allocator<T>().deallocate(p, n);
        else
            free_block(p, n * sizeof(T));
    }

    template <class U>
    constexpr bool operator==(const cached_allocator<U>&) const noexcept
    {
        return true;
    }

private:
    static constexpr bool has_large_alignment() noexcept
    {
        return alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    }
};

} // namespace turnstile::inline v0_1::detail
