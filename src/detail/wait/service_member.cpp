// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/wait/service_member.hpp>

#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace turnstile::inline v0_1::detail {

// Outlives the context for as long as there are members.
struct service_member::registry {
    struct leaver : boost::intrusive::list_base_hook<> {
        std::thread::id thread = std::this_thread::get_id();
    };

    bool somebody_else_leaves() const noexcept
    {
        return std::any_of(leavers.begin(), leavers.end(),
                           [](const leaver& l) { return l.thread != std::this_thread::get_id(); });
    }

    std::mutex mutex;
    boost::intrusive::list<service_member> members;
    boost::intrusive::list<leaver> leavers;
    std::condition_variable one_has_left;
};

class wait_service final : public boost::asio::execution_context::service {
public:
    using key_type = wait_service;
    static boost::asio::execution_context::id id;

    explicit wait_service(boost::asio::execution_context& context) : service(context) {}

    const std::shared_ptr<service_member::registry>& registry() const noexcept { return registry_; }

private:
    // Destroying one member's handlers may destroy other members: take them one by one.
    void shutdown() override
    {
        while (service_member* member = take_one()) {
            member->shut_down();
            member->drop_last_reference();
        }
        std::unique_lock lock(registry_->mutex);
        registry_->one_has_left.wait(lock, [&] { return !registry_->somebody_else_leaves(); });
    }

    service_member* take_one() noexcept
    {
        std::scoped_lock lock(registry_->mutex);
        if (registry_->members.empty())
            return nullptr;
        service_member& member = registry_->members.front();
        registry_->members.pop_front();
        member.is_registered_ = false;
        member.add_reference();
        return &member;
    }

    std::shared_ptr<service_member::registry> registry_ =
        std::make_shared<service_member::registry>();
};

boost::asio::execution_context::id wait_service::id;

service_member::service_member(boost::asio::execution_context& context)
    : registry_(boost::asio::use_service<wait_service>(context).registry())
{
    std::scoped_lock lock(registry_->mutex);
    registry_->members.push_back(*this);
}

// Only one that was never referred to, since a constructor has thrown, has still to leave.
service_member::~service_member()
{
    if (is_registered_) {
        std::scoped_lock lock(registry_->mutex);
        erase();
    }
}

void service_member::erase() noexcept
{
    registry_->members.erase(registry_->members.iterator_to(*this));
    is_registered_ = false;
}

void service_member::leave(std::unique_lock<std::mutex>& lock) noexcept
{
    erase();
    registry::leaver self;
    registry_->leavers.push_back(self);
    lock.unlock();
    forget_context();
    lock.lock();
    registry_->leavers.erase(registry_->leavers.iterator_to(self));
    registry_->one_has_left.notify_all();
}

void service_member::drop_last_reference() noexcept
{
    {
        std::unique_lock lock(registry_->mutex);
        if (!drop_reference())
            return;
        if (is_registered_)
            leave(lock);
    }
    delete this;
}

} // namespace turnstile::inline v0_1::detail
