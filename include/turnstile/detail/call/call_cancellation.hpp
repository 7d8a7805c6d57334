// SPDX-License-Identifier: BSL-1.0
// The connection between the cancellation slot of a caller and the supervisor that the slot
// cancels. The slot holds a shared reference to it, and so does the supervisor (supervision.hpp).
//
// Invariant: the slot is assigned once, and is not touched after that. A signal that is emitted on
// any thread, and however late, reaches the supervisor while it exists, and otherwise does nothing.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <memory>
#include <mutex>

namespace turnstile::inline v0_1::detail {

class call_cancellation {
public:
    class target {
    public:
        // Called under the lock. Returns false if the call has ended; otherwise the target stays
        // alive until accept(), which follows.
        virtual bool try_hold() noexcept = 0;
        virtual void accept(asio::cancellation_type_t type) = 0;

    protected:
        ~target() = default;
    };

    explicit call_cancellation(target& t) noexcept : target_(&t) {}

    void cancel(asio::cancellation_type_t type)
    {
        target* held = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (target_ && target_->try_hold())
                held = target_;
        }
        if (held)
            held->accept(type);
    }

    void disconnect() noexcept
    {
        const std::lock_guard lock(mutex_);
        target_ = nullptr;
    }

    // Returns null if the handler has no connected slot.
    template <class Handler>
    static std::shared_ptr<call_cancellation> connect(const Handler& handler, target& t)
    {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (!slot.is_connected())
            return nullptr;
        auto relay =
            std::allocate_shared<call_cancellation>(cached_allocator<call_cancellation>(), t);
        slot.assign([relay](asio::cancellation_type_t type) { relay->cancel(type); });
        return relay;
    }

private:
    spin_mutex mutex_;
    target* target_;
};

} // namespace turnstile::inline v0_1::detail
