// SPDX-License-Identifier: BSL-1.0
// The number of heap allocations of the program, and the bytes in use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench::heap {

// Allocations of all threads so far: malloc, calloc, realloc, aligned_alloc, posix_memalign,
// memalign, and with them operator new. Always 0 where the C library cannot be hooked.
std::uint64_t allocations() noexcept;

// Bytes allocated and not yet freed, with the allocator's own overhead.
std::size_t bytes_in_use() noexcept;

} // namespace bench::heap
