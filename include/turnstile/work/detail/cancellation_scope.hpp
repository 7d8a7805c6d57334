// SPDX-License-Identifier: BSL-1.0
// The operations that are bound to a cancellation_source, and its children: cancellation_scope. It
// is apart from the source's wait_state, because bound operations and children may outlive the
// source and its execution context. The source, each of its bound operations, each token that
// bind() returned and each child hold a reference; a scope holds none to its children.
//
// A bound_operation holds the cancellation signal of one operation, and posts the emission to the
// executor of the operation. Its word has these parts:
//
//   pending     The types of cancellation that are requested and not yet emitted.
//   seen        The types that the source has requested.
//   initiating  The initiating function has not returned. Nothing is emitted, because the operation
//               may be assigning a handler to its slot.
//   queued      The emission is posted, or running. No second emission is started; the running one
//               emits what is pending.
//   completed   The completion handler was called or destroyed. Nothing is emitted.
//   references  The completion handler, the initiating function, a queued emission, the handler in
//               the operation's own slot, and a running cancel() each hold one.
//
// Invariants: the lists change under the lock of the scope; nothing is posted, emitted or destroyed
// under it. An operation is linked until its handler is called or destroyed. The signal and the
// executor belong to the emission while `queued` is set, and otherwise to the operation. A call of
// cancel() needs no memory, unless the executor of an operation does, and does not recurse: it
// walks down the tree of scopes and back up by the pointers to the parents.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/sync/detail/event_state.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class cancellation_scope;

using scope_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// The types of cancellation as the bits of a word.
constexpr std::uint32_t all_cancellation_types = 7;
constexpr std::uint32_t cancellation_bits(asio::cancellation_type_t type) noexcept
{
    return static_cast<std::uint32_t>(type) & all_cancellation_types;
}

// The part of a source's state that its scope knows: the operations that wait for the cancellation.
template <class Threading>
class TURNSTILE_EXPORT cancellation_waiters : public event_state<Threading> {
public:
    using event_state<Threading>::event_state;
    // Called for each further type of cancellation, without a lock.
    virtual void source_cancelled() noexcept = 0;
};

template <class Threading>
class TURNSTILE_EXPORT bound_operation final : public scope_hook, private intrusive_task {
public:
    using scope_ptr = boost::intrusive_ptr<cancellation_scope<Threading>>;

    bound_operation() noexcept : intrusive_task(&bound_operation::run_posted) {}

    asio::cancellation_slot slot() noexcept { return signal_.slot(); }

    // Called by the initiating function: before and after the initiation. The executor is that of
    // the operation.
    void set_executor(posting_executor executor) noexcept { executor_ = std::move(executor); }
    void end_initiation() noexcept;

    // The completion handler is about to be called, or is destroyed.
    TURNSTILE_HOT void complete() noexcept
    {
        bool is_last = false;
        bool is_queued = false;
        const auto mark = [&](std::uint32_t& word) noexcept {
            is_last = (word & ~(pending | seen)) == reference;
            is_queued = (word & queued) != 0;
            word |= completed;
            if (is_last)
                word -= reference;
            return true;
        };
        word_.update(mark, std::memory_order_acq_rel);
        const posting_executor unused = is_queued ? posting_executor() : release_signal();
        end_binding(is_last);
    }

    // The signal of the operation's own slot was emitted, by Asio's rule on its executor.
    void cancel_here(asio::cancellation_type_t type);

    void add_reference() noexcept { word_.fetch_add(reference, std::memory_order_relaxed); }
    void drop_reference() noexcept
    {
        if ((word_.fetch_sub(reference, std::memory_order_acq_rel) & ~(reference - 1)) == reference)
            recycle();
    }

private:
    friend cancellation_scope<Threading>;

    static constexpr std::uint32_t pending = all_cancellation_types;
    static constexpr std::uint32_t seen_shift = 3;
    static constexpr std::uint32_t seen = all_cancellation_types << seen_shift;
    static constexpr std::uint32_t initiating = 1U << 6;
    static constexpr std::uint32_t queued = 1U << 7;
    static constexpr std::uint32_t completed = 1U << 8;
    static constexpr std::uint32_t reference = 1U << 9;

    // An empty handler for the slot: it keeps the memory of the handler that it replaces.
    struct nothing {
        void operator()(asio::cancellation_type_t) const noexcept {}
    };

    // With a reference for the completion handler and one for the initiating function.
    void begin(std::uint32_t type) noexcept
    {
        word_.store(type | type << seen_shift | initiating | 2 * reference,
                    std::memory_order_relaxed);
    }
    bool try_add_reference() noexcept
    {
        return word_.update(
            [](std::uint32_t& word) noexcept {
                word += reference;
                return (word & completed) == 0;
            },
            std::memory_order_acq_rel);
    }
    // Ends a reference that is passed on to the emission, if there is anything to emit.
    void request(std::uint32_t type) noexcept;
    void post_emission() noexcept;
    void emit_pending();
    bool take_pending(std::uint32_t& type) noexcept;
    posting_executor release_signal() noexcept
    {
        if (signal_.slot().has_handler())
            signal_.slot().template emplace<nothing>();
        return std::exchange(executor_, posting_executor());
    }
    void end_binding(bool is_last) noexcept;
    void recycle() noexcept;
    static void run_posted(intrusive_task& self, task_action action);

    policy_atomic<Threading, std::uint32_t> word_;
    scope_ptr scope_;
    posting_executor executor_;
    asio::cancellation_signal signal_;
    bound_operation* next_unused_ = nullptr;
};

template <class Threading>
class TURNSTILE_EXPORT cancellation_scope final : public scope_hook {
public:
    using operation = bound_operation<Threading>;
    using pointer = boost::intrusive_ptr<cancellation_scope>;

    // A scope without a parent, or a child, which is cancelled if its parent is.
    static pointer make(pointer parent = nullptr);

    cancellation_scope(const cancellation_scope&) = delete;
    cancellation_scope& operator=(const cancellation_scope&) = delete;
    ~cancellation_scope();

    bool is_cancelled() const noexcept { return type_.load(std::memory_order_acquire) != 0; }
    // Whether it was cancelled with all of these types.
    bool is_cancelled(std::uint32_t types) const noexcept
    {
        return (types & ~type_.load(std::memory_order_acquire)) == 0;
    }

    // Cancels the scope and all below it.
    void cancel(std::uint32_t type) noexcept;

    // Sets and clears the object to notify. Returns true if the scope is cancelled already.
    bool watch(cancellation_waiters<Threading>& waiters) noexcept;
    void unwatch() noexcept;

    enum class if_cancelled { refuse, start_cancelled };

    // Binds an operation. Returns null if the scope is cancelled and the operation is to be
    // refused. The caller calls end_initiation() and complete().
    TURNSTILE_HOT static operation* bind(pointer scope, if_cancelled rule)
    {
        cancellation_scope& self = *scope;
        self.mutex_.lock();
        const std::uint32_t type = self.type_.load(std::memory_order_relaxed);
        operation* const op = self.unused_;
        if (type != 0 || !op) [[unlikely]] {
            self.mutex_.unlock();
            return bind_slowly(std::move(scope), rule);
        }
        self.unused_ = op->next_unused_;
        --self.unused_count_;
        op->begin(0);
        op->scope_ = std::move(scope);
        self.bound_.push_back(*op);
        self.mutex_.unlock();
        return op;
    }

    friend void intrusive_ptr_add_ref(cancellation_scope* s) noexcept
    {
        s->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(cancellation_scope* s) noexcept
    {
        if (s->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            destroy(s);
    }

private:
    friend operation;

    template <class T>
    using list = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;

    // Memory of ended operations that is kept for later ones.
    static constexpr std::size_t most_unused = 256;

    explicit cancellation_scope(pointer parent) noexcept : parent_(std::move(parent)) {}

    TURNSTILE_COLD static void destroy(cancellation_scope* s) noexcept;
    TURNSTILE_COLD static operation* bind_slowly(pointer scope, if_cancelled rule);

    void cancel_own(std::uint32_t type) noexcept;
    void cancel_bound() noexcept;
    // Returns a child that is not cancelled yet, with a reference, and the type to pass on.
    cancellation_scope* take_child(std::uint32_t& type) noexcept;
    bool try_add_reference() noexcept;

    // The operation ends. recycle() also keeps its memory.
    void unbind(operation& op) noexcept;
    void recycle(operation& op) noexcept;
    // The executor of op has no memory for the emission, which is posted again later.
    TURNSTILE_COLD void postpone(operation& op) noexcept;

    pointer parent_;
    policy_atomic<Threading, std::size_t> references_{0};
    policy_atomic<Threading, std::uint32_t> type_{0}; // 0: not cancelled
    // Operations to be cancelled, or already cancelled with the current type, or to be posted
    // again.
    list<operation> bound_;
    list<operation> cancelled_;
    list<operation> postponed_;
    // Children to be cancelled, or already cancelled with the current type.
    list<cancellation_scope> children_;
    list<cancellation_scope> cancelled_children_;
    cancellation_waiters<Threading>* waiters_ = nullptr;
    operation* unused_ = nullptr;
    std::size_t unused_count_ = 0;
    typename Threading::mutex_type mutex_;
};

template <class Threading>
using cancellation_scope_ptr = typename cancellation_scope<Threading>::pointer;

extern template class bound_operation<thread_safe>;
extern template class bound_operation<strand_confined>;
extern template class cancellation_scope<thread_safe>;
extern template class cancellation_scope<strand_confined>;

} // namespace turnstile::inline v0_1::detail
