// SPDX-License-Identifier: BSL-1.0
#pragma once

// A handler that is lent to an operation: if the initiation throws, and the operation has not
// kept the handler, it is back.
//
// The operation may be over, on another thread, before its initiation is. By then the handler has
// run, its memory is free and its allocator may be gone, so the lender must not touch them any
// more; nor may the operation touch the lender once that has left. Both make sure under a mutex
// that belongs to neither.

#include <turnstile/core/export.hpp>
#include <turnstile/detail/call/wraps_handler.hpp>
#include <turnstile/detail/post/handler_allocator.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>

#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

namespace turnstile::inline v0_1::detail {

enum class loan_state {
    with_lender, // not lent yet, or back
    lent,
    called, // and gone
};

class loan_block;

// The lender's end of a loan, on its stack.
class loan_lender {
public:
    loan_lender() = default;
    loan_lender(const loan_lender&) = delete;
    loan_lender& operator=(const loan_lender&) = delete;

    // Says what has become of the loan. If it is still out, the lender does not hear of it
    // again, and must not touch the block.
    TURNSTILE_EXPORT loan_state leave(loan_block& block) noexcept;
    // After that: whether the handler was called, and by this thread.
    bool was_called_here() const noexcept { return caller_ == std::this_thread::get_id(); }

private:
    friend loan_block;

    std::atomic<loan_state> state_{loan_state::with_lender};
    std::thread::id caller_;
};

// The operation's end of it, in a block with the handler.
class loan_block {
public:
    void lend_by(loan_lender& lender) noexcept
    {
        lender.state_.store(loan_state::lent, std::memory_order_relaxed);
        lender_.store(&lender, std::memory_order_relaxed);
    }

    // The handler is about to be called. From here on nobody else touches the block.
    void call() noexcept
    {
        if (lender_.load(std::memory_order_acquire)) [[unlikely]]
            tell_lender(loan_state::called);
    }

    // The handler will not be called. True if the lender takes the block back.
    bool give_back() noexcept
    {
        return lender_.load(std::memory_order_acquire) && tell_lender(loan_state::with_lender);
    }

private:
    friend loan_lender;

    // False if it has left.
    TURNSTILE_EXPORT bool tell_lender(loan_state state) noexcept;

    std::atomic<loan_lender*> lender_{nullptr};
};

template <class Handler>
struct loan_block_of : loan_block {
    explicit loan_block_of(Handler&& h) : handler(std::move(h)) {}

    // Ends the block.
    template <class Allocator>
    Handler take(const Allocator& allocator)
    {
        Handler taken(std::move(handler));
        destroy_with(allocator, this);
        return taken;
    }

    Handler handler;
};

// What the operation gets. All memory of the handler is free when that is called.
template <class Handler>
class lent_handler {
public:
    using wrapped_handler = Handler;
    using allocator_type = handler_allocator_t<std::byte, Handler>;

    lent_handler(loan_block_of<Handler>& block, const allocator_type& allocator) noexcept
        : allocator_(allocator), block_(&block)
    {
    }
    lent_handler(lent_handler&& other) noexcept
        : allocator_(other.allocator_), block_(std::exchange(other.block_, nullptr))
    {
    }
    lent_handler& operator=(lent_handler&&) = delete;
    ~lent_handler()
    {
        if (block_ && !block_->give_back()) [[maybe_unused]]
            const Handler dropped = block_->take(allocator_);
    }

    template <class... Args>
    void operator()(Args&&... args)
    {
        block_->call();
        Handler handler = std::exchange(block_, nullptr)->take(allocator_);
        std::move(handler)(std::forward<Args>(args)...);
    }

    const Handler& get() const noexcept { return block_->handler; }

    // Asio asks for it even after a move, if what it moved the handler into then throws.
    allocator_type get_allocator() const noexcept { return allocator_; }

private:
    [[no_unique_address]] allocator_type allocator_;
    loan_block_of<Handler>* block_;
};

// Who lends, for the time of the initiation. The memory is from the handler's allocator; if there
// is none, the handler has not been moved from.
template <class Handler>
class handler_loan {
    using block = loan_block_of<Handler>;

public:
    explicit handler_loan(Handler&& handler)
        : allocator_(handler_allocator<std::byte>(handler)),
          block_(make_in_memory_of<block>(
              handler, [&](void* memory) { return new (memory) block(std::move(handler)); }))
    {
    }
    handler_loan(const handler_loan&) = delete;
    handler_loan& operator=(const handler_loan&) = delete;
    ~handler_loan()
    {
        if (end()) [[maybe_unused]]
            const Handler dropped = take();
    }

    lent_handler<Handler> lend() noexcept
    {
        block_->lend_by(lender_);
        return lent_handler<Handler>(*block_, allocator_);
    }

    // The end of the initiation: whether the handler is back, and to be taken. If not, it was
    // called, or whoever has it now completes it.
    bool end() noexcept
    {
        if (block_ && lender_.leave(*block_) != loan_state::with_lender)
            block_ = nullptr;
        return block_ != nullptr;
    }
    bool was_called_here() const noexcept { return lender_.was_called_here(); }

    Handler take() { return std::exchange(block_, nullptr)->take(allocator_); }

private:
    loan_lender lender_;
    [[no_unique_address]] handler_allocator_t<std::byte, Handler> allocator_;
    block* block_;
};

} // namespace turnstile::inline v0_1::detail
