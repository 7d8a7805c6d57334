// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/keyed_mutex_state.hpp>

namespace turnstile::inline v0_1::detail {

template <class Threading>
keyed_mutex_node*
keyed_mutex_state<Threading>::find(std::size_t hash, std::uint64_t seen, keyed_mutex_node* made,
                                   table::storage& storage, std::size_t& storage_needed) noexcept
{
    return this->guarded([&]() -> keyed_mutex_node* {
        storage_needed = 0;
        keyed_mutex_node* n = table_.next(hash, seen);
        if (!n && made) {
            const std::size_t needed = table_.storage_needed();
            if (needed > storage.size) {
                storage_needed = needed;
                return nullptr;
            }
            if (needed != 0)
                table_.grow(storage);
            table_.insert(*made);
            made->is_locked = true;
            ++locked_;
            n = made;
        }
        if (n)
            ++n->pins;
        return n;
    });
}

template <class Threading>
void keyed_mutex_state<Threading>::unpin(keyed_mutex_nodes nodes) noexcept
{
    removed_keys removed;
    this->guarded([&] { unpin_nodes(nodes, removed); });
}

template <class Threading>
bool keyed_mutex_state<Threading>::try_lock(keyed_mutex_nodes nodes) noexcept
{
    return this->guarded([&] {
        for (const keyed_mutex_node* n : nodes) {
            if (n->is_locked)
                return false;
        }
        for (keyed_mutex_node* n : nodes)
            n->is_locked = true;
        locked_ += nodes.size();
        return true;
    });
}

template <class Threading>
void keyed_mutex_state<Threading>::unlock(keyed_mutex_nodes nodes) noexcept
{
    this->update([&](ready_list& ready) { unlock_nodes(nodes, ready); });
}

template <class Threading>
void keyed_mutex_state<Threading>::unlock_and_unpin(keyed_mutex_nodes nodes) noexcept
{
    removed_keys removed;
    this->update([&](ready_list& ready) {
        unlock_nodes(nodes, ready);
        unpin_nodes(nodes, removed);
    });
}

// Locks the nodes of w, one after the other. Returns true if w has all of them; otherwise w is
// queued at the node that is locked.
template <class Threading>
bool keyed_mutex_state<Threading>::advance(keyed_mutex_waiter& w) noexcept
{
    for (; w.held != w.nodes.size(); ++w.held) {
        keyed_mutex_node& n = *w.nodes[w.held];
        if (n.is_locked) {
            n.queue.push_back(w);
            ++n.waiting;
            return false;
        }
        n.is_locked = true;
        ++locked_;
    }
    return true;
}

template <class Threading>
bool keyed_mutex_state<Threading>::admit(waiter& plain) noexcept
{
    if (!advance(static_cast<keyed_mutex_waiter&>(plain)))
        return false;
    plain.grant();
    return true;
}

template <class Threading>
void keyed_mutex_state<Threading>::unlock_node(keyed_mutex_node& n, ready_list& ready) noexcept
{
    if (n.queue.empty()) {
        n.is_locked = false;
        --locked_;
        return;
    }
    // The node stays locked, for the next waiter.
    auto& next = static_cast<keyed_mutex_waiter&>(take_front(n.queue));
    --n.waiting;
    ++next.held;
    if (!advance(next))
        return;
    next.grant();
    ready.push_back(next);
}

template <class Threading>
void keyed_mutex_state<Threading>::unlock_nodes(keyed_mutex_nodes nodes, ready_list& ready) noexcept
{
    for (keyed_mutex_node* n : nodes)
        unlock_node(*n, ready);
    if (is_orphaned_ && locked_ == 0 && !nodes.empty())
        ready.drop_handles_reference();
}

template <class Threading>
void keyed_mutex_state<Threading>::unpin_nodes(keyed_mutex_nodes nodes,
                                               removed_keys& removed) noexcept
{
    for (keyed_mutex_node* n : nodes) {
        if (--n->pins != 0)
            continue;
        table_.erase(*n);
        removed.add(*n);
    }
}

template <class Threading>
void keyed_mutex_state<Threading>::remove(waiter& plain) noexcept
{
    leaving_ = &static_cast<keyed_mutex_waiter&>(plain);
    leaving_->waiter_hook::unlink();
    --leaving_->nodes[leaving_->held]->waiting;
}

// The waiter that has left had locked some of its nodes already.
template <class Threading>
void keyed_mutex_state<Threading>::reconsider(ready_list& ready) noexcept
{
    unlock_nodes(leaving_->nodes.first(leaving_->held), ready);
    leaving_ = nullptr;
}

template <class Threading>
void keyed_mutex_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    unlock_nodes(static_cast<keyed_mutex_waiter&>(w).nodes, ready);
}

template <class Threading>
bool keyed_mutex_state<Threading>::keep_for_handles() noexcept
{
    is_orphaned_ = true;
    return locked_ != 0;
}

template <class Threading>
void keyed_mutex_state<Threading>::take_all(waiter_list& out) noexcept
{
    if (!this->has_waiters())
        return;
    table_.for_each([&](keyed_mutex_node& n) {
        out.splice(out.end(), n.queue);
        n.waiting = 0;
    });
    // No waiter is left that could take over the nodes.
    for (waiter& plain : out) {
        auto& w = static_cast<keyed_mutex_waiter&>(plain);
        for (keyed_mutex_node* n : w.nodes.first(w.held))
            n->is_locked = false;
        locked_ -= w.held;
        w.held = 0;
    }
}

template class keyed_mutex_state<thread_safe>;
template class keyed_mutex_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
