// SPDX-License-Identifier: BSL-1.0
// How often the program went to the heap, and how much of it is in use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench::heap {

// Allocations of all threads so far: malloc, calloc, realloc, aligned_alloc, posix_memalign,
// memalign, and with them operator new. Always 0 where the C library cannot be hooked.
std::uint64_t allocations() noexcept;

// Bytes handed out and not given back, with the allocator's own overhead.
std::size_t bytes_in_use() noexcept;

} // namespace bench::heap
