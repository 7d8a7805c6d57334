// SPDX-License-Identifier: BSL-1.0
// The node of a shared_value: a reference-counted value, stored once and shared by all receivers of
// a broadcast or a watch.
//
// broadcast_state and watch_state handle values as shared_node and do not depend on T; shared_value
// knows that the node is a value_node<T>. A node is made before the channel is locked and freed
// after the channel is unlocked, so constructors and destructors of T may throw, block or call the
// channel. The value does not change once it is shared.
#pragma once

#include <turnstile/detail/util/recycled_memory.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
using reference_counter = std::conditional_t<Threading::is_confined, boost::thread_unsafe_counter,
                                             boost::thread_safe_counter>;

template <class Threading>
class shared_node
    : public boost::intrusive_ref_counter<shared_node<Threading>, reference_counter<Threading>> {
public:
    virtual ~shared_node() = default;
};

template <class Threading>
using node_ptr = boost::intrusive_ptr<shared_node<Threading>>;

template <class T, class Threading>
class value_node final : public shared_node<Threading>,
                         public recycled_memory<value_node<T, Threading>> {
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
