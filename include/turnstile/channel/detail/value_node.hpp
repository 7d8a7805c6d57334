#pragma once

#include <turnstile/core/detail/wait_state.hpp>

#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>
#include <utility>

namespace turnstile::detail {

// What a channel knows of a value that it shares out: how many have a share.
template <class Threading>
class shared_node
    : public boost::intrusive_ref_counter<shared_node<Threading>, reference_counter<Threading>> {
public:
    virtual ~shared_node() = default;
};

template <class Threading>
using node_ptr = boost::intrusive_ptr<shared_node<Threading>>;

// Made before the channel is locked, and freed after: a value's constructors may throw, and
// do what they like. The memory comes from what Asio recycles on this thread.
template <class T, class Threading>
class value_node final : public shared_node<Threading> {
    using memory = asio::recycling_allocator<value_node>;

public:
    template <class... Args>
    explicit value_node(Args&&... args) : value(std::forward<Args>(args)...)
    {
    }

    static void* operator new(std::size_t) { return memory().allocate(1); }
    static void operator delete(void* p) noexcept
    {
        memory().deallocate(static_cast<value_node*>(p), 1);
    }

    T value;
};

template <class T, class Threading, class... Args>
node_ptr<Threading> make_node(Args&&... args)
{
    return node_ptr<Threading>(new value_node<T, Threading>(std::forward<Args>(args)...));
}

} // namespace turnstile::detail
