// SPDX-License-Identifier: BSL-1.0
// An object that uses an execution context and must give up everything that needs the context,
// handlers above all, before the context is destroyed. Every wait_state is one. The members of a
// context are registered with a service of the context, wait_service, which shuts each member down
// when the context is destroyed. A member whose last reference is dropped earlier deregisters
// itself.
//
// Invariants: the shutdown and the last drop of a reference may happen at the same time on two
// threads. The last reference is therefore dropped under the lock of the registry, so the service
// can take a reference to every member that it finds there; and the shutdown waits for members that
// are deregistering. Such a member gives up its executor without the lock, because the executor is
// the user's and may own anything, even the context. For that reason the shutdown does not wait for
// its own thread.
#pragma once

#include <turnstile/core/export.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/list_hook.hpp>

#include <memory>
#include <mutex>

namespace turnstile::inline v0_1::detail {

class wait_service;

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

    // Drops a reference, and deletes the member if it was the last one.
    void drop_last_reference() noexcept;

private:
    friend class wait_service;
    struct registry;

    virtual void add_reference() noexcept = 0;
    virtual bool drop_reference() noexcept = 0; // returns true for the last one
    // The context is being destroyed: destroys the handlers, and gives up everything else that
    // needs the context.
    virtual void shut_down() noexcept = 0;
    // The part of shut_down() for a member without waiters, while the context still exists. The
    // call may destroy the context, if the member's executor owns it.
    virtual void forget_context() noexcept = 0;
    void erase() noexcept;
    void deregister(std::unique_lock<std::mutex>& lock) noexcept;

    std::shared_ptr<registry> registry_;
    bool is_registered_ = true;
};

} // namespace turnstile::inline v0_1::detail
