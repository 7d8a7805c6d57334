// SPDX-License-Identifier: BSL-1.0
// recycled_memory<T>: a base class of T with an operator new that uses Asio's recycling allocator,
// so that an object that is made and destroyed often reuses its memory. The values of channels, the
// state of a oneshot and the children of a group derive from it.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>

namespace turnstile::inline v0_1::detail {

template <class T>
class recycled_memory {
public:
    static void* operator new(std::size_t) { return asio::recycling_allocator<T>().allocate(1); }
    static void operator delete(void* p) noexcept
    {
        asio::recycling_allocator<T>().deallocate(static_cast<T*>(p), 1);
    }

protected:
    ~recycled_memory() = default;
};

} // namespace turnstile::inline v0_1::detail
