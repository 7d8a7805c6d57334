// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/export.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/list_hook.hpp>

#include <memory>
#include <mutex>

namespace turnstile::inline v0_1::detail {

class wait_service;

// Something shared that must drop its handlers, and whatever else needs the execution context,
// before that is gone. The context knows its members through a service, and tells each of them
// when it shuts down: then, or with its last reference, whichever comes first.
//
// Both may happen at a time, on two threads. So the last reference is given up under the lock
// with which the context looks for members: whom it finds there, it can still refer to. And it
// waits for those who are just leaving. What they drop is the user's, an executor that may own
// anything, even the context: so they do that without the lock, and the context does not wait for
// the thread that it is destroyed on.
class TURNSTILE_EXPORT service_member
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::normal_link>> {
public:
    explicit service_member(boost::asio::execution_context& context);
    service_member(const service_member&) = delete;
    service_member& operator=(const service_member&) = delete;

    bool has_context_of(const service_member& other) const noexcept
    {
        return registry_ == other.registry_;
    }

protected:
    virtual ~service_member();

    // Drops a reference that may be the last one.
    void drop_last_reference() noexcept;

private:
    friend class wait_service;
    struct registry;

    virtual void add_reference() noexcept = 0;
    virtual bool drop_reference() noexcept = 0; // true for the last one
    virtual void shut_down() noexcept = 0;
    // What is to be done of that if nobody waits any more; the context is still there, unless
    // this gives up the last that owns it.
    virtual void forget_context() noexcept = 0;
    void erase() noexcept;
    void leave(std::unique_lock<std::mutex>& lock) noexcept;

    std::shared_ptr<registry> registry_;
    bool is_registered_ = true;
};

} // namespace turnstile::inline v0_1::detail
