// SPDX-License-Identifier: BSL-1.0
// A completion handler that is lent to an operation while its initiating function runs. If the
// initiating function throws and has not kept the handler, the handler returns to the lender, which
// can deliver the failure to it. operation_start.hpp starts operations in this way.
//
// The handler is moved into a block from its own allocator, and the operation receives a
// lent_handler that points to the block. The lender is on the stack of the initiating function.
// Either side may end first: the operation may complete on another thread while the initiating
// function is still running. By then the handler has run, its memory is free and its allocator may
// be destroyed.
//
// Invariants:
// - The lender does not touch the block after the handler was called, and the operation does not
//   touch the lender after it has detached. A mutex that belongs to neither side guards both.
// - The memory of the handler is free when the handler is called.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/call/handler_wrapper.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

namespace turnstile::inline v0_1::detail {

enum class loan_state {
    with_lender, // the handler is not lent yet, or has returned
    lent,        // the operation has the handler
    called,      // the operation has called the handler; the block is freed
};

class loan_block;

// The side of the initiating function.
class loan_lender {
public:
    loan_lender() = default;
    loan_lender(const loan_lender&) = delete;
    loan_lender& operator=(const loan_lender&) = delete;

    // Ends the part of the lender, and returns the state of the loan. Unless the handler is with
    // the lender, the lender must not touch the block from here on.
    TURNSTILE_EXPORT loan_state detach(loan_block& block) noexcept;
    // After detach(): whether this thread has called the handler.
    bool was_called_here() const noexcept { return caller_ == std::this_thread::get_id(); }

private:
    friend loan_block;

    std::atomic<loan_state> state_{loan_state::with_lender};
    std::thread::id caller_;
};

// The side of the operation, in a block with the handler.
class loan_block {
public:
    void lend_by(loan_lender& lender) noexcept
    {
        lender.state_.store(loan_state::lent, std::memory_order_relaxed);
        lender_.store(&lender, std::memory_order_relaxed);
    }

    // Called before the handler. From here on only the operation touches the block.
    void call() noexcept
    {
        if (lender_.load(std::memory_order_acquire)) [[unlikely]]
            notify_lender(loan_state::called);
    }

    // The operation destroys the handler without calling it. Returns true if the block returns to
    // the lender.
    bool give_back() noexcept
    {
        return lender_.load(std::memory_order_acquire) && notify_lender(loan_state::with_lender);
    }

private:
    friend loan_lender;

    // Returns false if the lender has detached.
    TURNSTILE_EXPORT bool notify_lender(loan_state state) noexcept;

    std::atomic<loan_lender*> lender_{nullptr};
};

template <class Handler>
struct loan_block_of : loan_block {
    explicit loan_block_of(Handler&& h) : handler(std::move(h)) {}

    // Returns the handler, and frees the block, also if moving the handler throws.
    template <class Allocator>
    Handler take(const Allocator& allocator)
    {
        struct block_release {
            const Allocator& allocator;
            loan_block_of* block;
            ~block_release() { destroy_with(allocator, block); }
        } const release{allocator, this};
        return Handler(std::move(handler));
    }

    Handler handler;
};

// The completion handler that the operation receives.
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

    // A copy, because Asio calls this also after a move, if the function that it moved the handler
    // into throws.
    allocator_type get_allocator() const noexcept { return allocator_; }

private:
    [[no_unique_address]] allocator_type allocator_;
    loan_block_of<Handler>* block_;
};

// A loan for the time of one initiating function. If the constructor throws for lack of memory, the
// handler has not been moved from.
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

    // Ends the loan. Returns true if the handler has returned; take() returns it. Otherwise the
    // operation has called the handler, or will call it.
    bool end() noexcept
    {
        if (block_ && lender_.detach(*block_) != loan_state::with_lender)
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
