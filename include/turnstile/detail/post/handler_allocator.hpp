// SPDX-License-Identifier: BSL-1.0
// Memory for blocks that contain a completion handler, such as a wait_operation. It comes from the
// handler's associated allocator, or from Asio's recycling allocator if the handler has none.
//
// Invariant: a block is freed with the allocator it was made with. The allocator is queried from
// the handler before the handler is moved out of the block.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class T, class Handler>
using handler_allocator_t = typename std::allocator_traits<boost::asio::associated_allocator_t<
    Handler, boost::asio::recycling_allocator<void>>>::template rebind_alloc<T>;

template <class T, class Handler>
handler_allocator_t<T, Handler> handler_allocator(const Handler& handler) noexcept
{
    return handler_allocator_t<T, Handler>(
        boost::asio::get_associated_allocator(handler, boost::asio::recycling_allocator<void>()));
}

// Returns make(memory), which constructs a T in memory of the allocator.
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

// The same with the allocator of a handler, which make() may move into the T.
template <class T, class Handler, class Make>
T* make_in_memory_of(const Handler& handler, Make&& make)
{
    return make_with<T>(handler_allocator<T>(handler), std::forward<Make>(make));
}

// Destroys a T that make_with() has made, and frees its memory.
template <class T, class Allocator>
void destroy_with(const Allocator& allocator, T* p) noexcept
{
    using rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
    rebound memory(allocator);
    std::destroy_at(p);
    std::allocator_traits<rebound>::deallocate(memory, p, 1);
}

// The deleter of a block that contains the allocator of its own memory.
struct block_deleter {
    template <class Block>
    void operator()(Block* block) const noexcept
    {
        const auto allocator = block->allocator;
        destroy_with(allocator, block);
    }
};

} // namespace turnstile::inline v0_1::detail
