// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/recycled.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
using reference_counter = std::conditional_t<Threading::is_confined, boost::thread_unsafe_counter,
                                             boost::thread_safe_counter>;

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
// do what they like.
template <class T, class Threading>
class value_node final : public shared_node<Threading>, public recycled<value_node<T, Threading>> {
public:
    template <class... Args>
    explicit value_node(Args&&... args) : value(std::forward<Args>(args)...)
    {
    }

    T value;
};

template <class T, class Threading, class... Args>
node_ptr<Threading> make_node(Args&&... args)
{
    return node_ptr<Threading>(new value_node<T, Threading>(std::forward<Args>(args)...));
}

} // namespace turnstile::inline v0_1::detail
