// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/cancellation_scope.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
void bound_operation<Threading>::end_initiation() noexcept
{
    bool emits = false;
    bool is_last = false;
    const auto end = [&](std::uint32_t& word) noexcept {
        emits = (word & pending) != 0 && (word & completed) == 0;
        word &= ~initiating;
        // The emission takes the reference over.
        if (emits)
            word |= queued;
        else
            word -= reference;
        is_last = word < reference;
        return true;
    };
    word_.update(end, std::memory_order_acq_rel);
    if (emits)
        post_emission();
    else if (is_last)
        recycle();
}

template <class Threading>
void bound_operation<Threading>::request(std::uint32_t type) noexcept
{
    bool emits = false;
    const auto add = [&](std::uint32_t& word) noexcept {
        const std::uint32_t fresh = type & ~(word >> seen_shift);
        word |= fresh | fresh << seen_shift;
        emits = (word & (initiating | queued | completed)) == 0 && (word & pending) != 0;
        if (emits)
            word |= queued;
        return true;
    };
    word_.update(add, std::memory_order_acq_rel);
    if (emits)
        post_emission();
    else
        drop_reference();
}

template <class Threading>
void bound_operation<Threading>::post_emission() noexcept
{
    // A copy, because the emission may run, and the operation end, before post() returns.
    const posting_executor executor = executor_;
    if (executor.post(*this)) [[likely]]
        return;
    bool ended = false;
    const auto give_up = [&](std::uint32_t& word) noexcept {
        ended = (word & completed) != 0;
        word &= ~queued;
        return true;
    };
    word_.update(give_up, std::memory_order_acq_rel);
    if (ended)
        release_signal();
    else
        scope_->postpone(*this);
    drop_reference();
}

// Returns false, and ends the emission, if there is nothing more to emit.
template <class Threading>
bool bound_operation<Threading>::take_pending(std::uint32_t& type) noexcept
{
    bool ended = false;
    const auto take = [&](std::uint32_t& word) noexcept {
        ended = (word & completed) != 0;
        type = ended ? 0 : word & pending;
        word &= ~(type != 0 ? pending : queued);
        return true;
    };
    word_.update(take, std::memory_order_acq_rel);
    if (type == 0 && ended)
        release_signal();
    return type != 0;
}

// The caller has a reference and has set `queued`.
template <class Threading>
void bound_operation<Threading>::emit_pending()
{
    std::uint32_t type = 0;
    while (take_pending(type)) {
        try {
            signal_.emit(static_cast<asio::cancellation_type_t>(type));
        } catch (...) {
            while (
                take_pending(type)) { // the exception of a cancellation handler ends the emission
            }
            throw;
        }
    }
}

template <class Threading>
void bound_operation<Threading>::cancel_here(asio::cancellation_type_t type)
{
    bool emits = false;
    const auto add = [&](std::uint32_t& word) noexcept {
        if ((word & completed) != 0)
            return false;
        word |= cancellation_bits(type);
        emits = (word & (initiating | queued)) == 0 && (word & pending) != 0;
        if (emits)
            word = (word | queued) + reference;
        return true;
    };
    if (!word_.update(add, std::memory_order_acq_rel) || !emits)
        return;
    const struct release {
        bound_operation& op;
        ~release() { op.drop_reference(); }
    } at_end{*this};
    emit_pending();
}

template <class Threading>
void bound_operation<Threading>::run_posted(intrusive_task& self, task_action action)
{
    auto& op = static_cast<bound_operation&>(self);
    const struct release {
        bound_operation& op;
        ~release() { op.drop_reference(); }
    } at_end{op};
    if (action == task_action::invoke)
        return op.emit_pending();
    // The context of the operation is being destroyed.
    std::uint32_t type = 0;
    while (op.take_pending(type)) {
    }
}

template <class Threading>
void bound_operation<Threading>::end_binding(bool is_last) noexcept
{
    if (is_last)
        return recycle();
    scope_->unbind(*this);
    drop_reference();
}

template <class Threading>
void bound_operation<Threading>::recycle() noexcept
{
    const scope_ptr scope = std::move(scope_);
    scope->recycle(*this);
}

template <class Threading>
auto cancellation_scope<Threading>::make(pointer parent) -> pointer
{
    cancellation_scope* const above = parent.get();
    pointer scope(new cancellation_scope(std::move(parent)));
    if (above) {
        std::scoped_lock lock(above->mutex_);
        const std::uint32_t type = above->type_.load(std::memory_order_relaxed);
        scope->type_.store(type, std::memory_order_relaxed);
        (type == 0 ? above->children_ : above->cancelled_children_).push_back(*scope);
    }
    return scope;
}

template <class Threading>
cancellation_scope<Threading>::~cancellation_scope()
{
    while (unused_)
        delete std::exchange(unused_, unused_->next_unused_);
}

// Iterative, because each scope may hold the last reference to its parent.
template <class Threading>
void cancellation_scope<Threading>::destroy(cancellation_scope* s) noexcept
{
    while (s) {
        cancellation_scope* const parent = s->parent_.detach();
        if (parent) {
            std::scoped_lock lock(parent->mutex_);
            s->unlink();
        }
        delete s;
        const bool ends_parent =
            parent && parent->references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
        s = ends_parent ? parent : nullptr;
    }
}

template <class Threading>
bool cancellation_scope<Threading>::try_add_reference() noexcept
{
    const auto add = [](std::size_t& n) noexcept { return n++ != 0; };
    return references_.update(add, std::memory_order_acq_rel);
}

// The scopes on the way from this one to `s` have a reference each, which ends on the way back.
template <class Threading>
void cancellation_scope<Threading>::cancel(std::uint32_t type) noexcept
{
    if (type == 0)
        return;
    const pointer keep_alive(this);
    cancellation_scope* s = this;
    s->cancel_own(type);
    for (;;) {
        if (cancellation_scope* const child = s->take_child(type)) {
            s = child;
            s->cancel_own(type);
            continue;
        }
        if (s == this)
            return;
        cancellation_scope* const parent = s->parent_.get();
        intrusive_ptr_release(s);
        s = parent;
    }
}

template <class Threading>
void cancellation_scope<Threading>::cancel_own(std::uint32_t type) noexcept
{
    boost::intrusive_ptr<cancellation_waiters<Threading>> notified;
    {
        std::scoped_lock lock(mutex_);
        const std::uint32_t before = type_.load(std::memory_order_relaxed);
        if ((type & ~before) != 0) {
            type_.store(before | type, std::memory_order_release);
            bound_.splice(bound_.end(), cancelled_);
            children_.splice(children_.end(), cancelled_children_);
            notified = waiters_;
        }
        bound_.splice(bound_.end(), postponed_);
    }
    if (notified)
        notified->source_cancelled();
    cancel_bound();
}

// A few operations at a time, so that the lock is held for a short time.
template <class Threading>
void cancellation_scope<Threading>::cancel_bound() noexcept
{
    std::array<operation*, 32> some;
    for (;;) {
        std::size_t n = 0;
        std::uint32_t type = 0;
        {
            std::scoped_lock lock(mutex_);
            if (bound_.empty())
                return;
            type = type_.load(std::memory_order_relaxed);
            while (n < some.size() && !bound_.empty()) {
                operation& op = bound_.front();
                bound_.pop_front();
                cancelled_.push_back(op);
                if (op.try_add_reference())
                    some[n++] = &op;
            }
        }
        for (std::size_t i = 0; i < n; ++i)
            some[i]->request(type);
    }
}

template <class Threading>
auto cancellation_scope<Threading>::take_child(std::uint32_t& type) noexcept -> cancellation_scope*
{
    std::scoped_lock lock(mutex_);
    type = type_.load(std::memory_order_relaxed);
    while (!children_.empty()) {
        cancellation_scope& child = children_.front();
        children_.pop_front();
        cancelled_children_.push_back(child);
        if (child.try_add_reference())
            return &child;
    }
    return nullptr;
}

template <class Threading>
bool cancellation_scope<Threading>::watch(cancellation_waiters<Threading>& waiters) noexcept
{
    std::scoped_lock lock(mutex_);
    waiters_ = &waiters;
    return type_.load(std::memory_order_relaxed) != 0;
}

template <class Threading>
void cancellation_scope<Threading>::unwatch() noexcept
{
    std::scoped_lock lock(mutex_);
    waiters_ = nullptr;
}

template <class Threading>
auto cancellation_scope<Threading>::bind_slowly(pointer scope, if_cancelled rule) -> operation*
{
    if (rule == if_cancelled::refuse && scope->is_cancelled())
        return nullptr;
    auto op = std::make_unique<operation>();
    cancellation_scope& self = *scope;
    std::scoped_lock lock(self.mutex_);
    const std::uint32_t type = self.type_.load(std::memory_order_relaxed);
    if (type != 0 && rule == if_cancelled::refuse)
        return nullptr;
    op->begin(type);
    op->scope_ = std::move(scope);
    (type == 0 ? self.bound_ : self.cancelled_).push_back(*op);
    return op.release();
}

template <class Threading>
void cancellation_scope<Threading>::unbind(operation& op) noexcept
{
    bool retries = false;
    {
        std::scoped_lock lock(mutex_);
        op.unlink();
        retries = !postponed_.empty();
        bound_.splice(bound_.end(), postponed_);
    }
    if (retries)
        cancel_bound();
}

template <class Threading>
void cancellation_scope<Threading>::recycle(operation& op) noexcept
{
    bool retries = false;
    bool is_kept = false;
    {
        std::scoped_lock lock(mutex_);
        if (op.is_linked())
            op.unlink();
        retries = !postponed_.empty();
        bound_.splice(bound_.end(), postponed_);
        is_kept = unused_count_ < most_unused;
        if (is_kept) {
            op.next_unused_ = std::exchange(unused_, &op);
            ++unused_count_;
        }
    }
    if (!is_kept)
        delete &op;
    if (retries)
        cancel_bound();
}

template <class Threading>
void cancellation_scope<Threading>::postpone(operation& op) noexcept
{
    std::scoped_lock lock(mutex_);
    if (!op.is_linked())
        return;
    op.unlink();
    postponed_.push_back(op);
}

template class bound_operation<thread_safe>;
template class bound_operation<strand_confined>;
template class cancellation_scope<thread_safe>;
template class cancellation_scope<strand_confined>;

} // namespace turnstile::inline v0_1::detail
