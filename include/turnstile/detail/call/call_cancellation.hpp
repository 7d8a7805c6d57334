// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/util/spin_mutex.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <memory>
#include <mutex>

namespace turnstile::inline v0_1::detail {

// Stands between a caller's cancellation slot and what it cancels. The slot is filled once,
// and never touched again; a signal emitted from any thread, also late, finds the target or
// nothing.
class call_cancellation {
public:
    class target {
    public:
        // Called under the relay's lock: false if it is over, else accept() follows.
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

    // Null if nobody can cancel this handler.
    template <class Handler>
    static std::shared_ptr<call_cancellation> connect(const Handler& handler, target& t)
    {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (!slot.is_connected())
            return nullptr;
        auto relay = std::allocate_shared<call_cancellation>(
            asio::recycling_allocator<call_cancellation>(), t);
        slot.assign([relay](asio::cancellation_type_t type) { relay->cancel(type); });
        return relay;
    }

private:
    spin_mutex mutex_;
    target* target_;
};

} // namespace turnstile::inline v0_1::detail
