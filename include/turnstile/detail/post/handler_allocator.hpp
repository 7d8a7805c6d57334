// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The allocator for blocks that hold a handler: its own, or what Asio recycles.
template <class T, class Handler>
using handler_allocator_t = typename std::allocator_traits<boost::asio::associated_allocator_t<
    Handler, boost::asio::recycling_allocator<void>>>::template rebind_alloc<T>;

template <class T, class Handler>
handler_allocator_t<T, Handler> handler_allocator(const Handler& handler) noexcept
{
    return handler_allocator_t<T, Handler>(
        boost::asio::get_associated_allocator(handler, boost::asio::recycling_allocator<void>()));
}

// What make() makes of memory for a T.
template <class T, class Allocator, class Make>
T* make_with(const Allocator& allocator, Make&& make)
{
    using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
    rebound memory(allocator);
    T* p = std::allocator_traits<rebound>::allocate(memory, 1);
    try {
        return make(static_cast<void*>(p));
    } catch (...) {
        std::allocator_traits<rebound>::deallocate(memory, p, 1);
        throw;
    }
}

// The same, in memory of the handler that is about to move into it.
template <class T, class Handler, class Make>
T* make_in_memory_of(const Handler& handler, Make&& make)
{
    return make_with<T>(handler_allocator<T>(handler), std::forward<Make>(make));
}

// Ends a T and frees its memory. The allocator is asked from a handler that has not been
// moved from, or was before.
template <class T, class Allocator>
void destroy_with(const Allocator& allocator, T* p) noexcept
{
    using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
    rebound memory(allocator);
    std::destroy_at(p);
    std::allocator_traits<rebound>::deallocate(memory, p, 1);
}

// Owns a block that has the allocator of its memory in it.
struct in_own_memory {
    template <class Block>
    void operator()(Block* b) const noexcept
    {
        const auto allocator = b->allocator;
        destroy_with(allocator, b);
    }
};

} // namespace turnstile::inline v0_1::detail
