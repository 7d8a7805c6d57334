// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>

namespace turnstile::inline v0_1::detail {

// A base of T that has it allocated in what Asio recycles on this thread.
template <class T>
class recycled {
public:
    static void* operator new(std::size_t) { return asio::recycling_allocator<T>().allocate(1); }
    static void operator delete(void* p) noexcept
    {
        asio::recycling_allocator<T>().deallocate(static_cast<T*>(p), 1);
    }

protected:
    ~recycled() = default;
};

} // namespace turnstile::inline v0_1::detail
