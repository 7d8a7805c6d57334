// SPDX-License-Identifier: BSL-1.0
// The global heap, watched: how often it is asked, and when it is to say no.
#pragma once

#include <cstddef>

namespace heap {

// Whether this build can watch aligned_alloc, which Asio recycles its memory from, too;
// sanitizers keep it for themselves.
#if TURNSTILE_SANITIZED
constexpr bool sees_aligned_alloc = false;
#else
constexpr bool sees_aligned_alloc = true;
#endif

// Allocations by this thread so far, failed ones included.
std::size_t allocations() noexcept;

// What operator new has given to this thread, and has not got back from it.
std::ptrdiff_t in_use() noexcept;

enum class failure { once, for_ever };

// While it lives, the k-th allocation from now on (counted from 0) fails, and with
// failure::for_ever every later one.
class failing {
public:
    failing(std::size_t k, failure how) noexcept;
    failing(const failing&) = delete;
    failing& operator=(const failing&) = delete;
    ~failing() { stop(); }

    // Whether an allocation has failed.
    bool happened() const noexcept;
    void stop() noexcept;
};

} // namespace heap
