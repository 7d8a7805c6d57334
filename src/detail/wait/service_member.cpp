// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/wait/service_member.hpp>

#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace turnstile::inline v0_1::detail {

// Shared by the service and its members, so it exists as long as any of them.
struct service_member::registry {
    // A deregistration that is in progress.
    struct departure : boost::intrusive::list_base_hook<> {
        std::thread::id thread = std::this_thread::get_id();
    };

    bool has_departure_on_other_thread() const noexcept
    {
        return std::any_of(departures.begin(), departures.end(), [](const departure& d) {
            return d.thread != std::this_thread::get_id();
        });
    }

    std::mutex mutex;
    boost::intrusive::list<service_member> members;
    boost::intrusive::list<departure> departures;
    std::condition_variable departed;
};

class wait_service final : public boost::asio::execution_context::service {
public:
    using key_type = wait_service;
    static boost::asio::execution_context::id id;

    explicit wait_service(boost::asio::execution_context& context) : service(context) {}

    const std::shared_ptr<service_member::registry>& registry() const noexcept { return registry_; }

private:
    // One member at a time, because destroying its handlers may destroy other members.
    void shutdown() override
    {
        while (service_member* member = take_one()) {
            member->shut_down();
            member->drop_last_reference();
        }
        std::unique_lock lock(registry_->mutex);
        registry_->departed.wait(lock, [&] { return !registry_->has_departure_on_other_thread(); });
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

// A member is still registered here only if the constructor of a derived class has thrown.
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

void service_member::deregister(std::unique_lock<std::mutex>& lock) noexcept
{
    erase();
    registry::departure self;
    registry_->departures.push_back(self);
    lock.unlock();
    forget_context();
    lock.lock();
    registry_->departures.erase(registry_->departures.iterator_to(self));
    registry_->departed.notify_all();
}

void service_member::drop_last_reference() noexcept
{
    {
        std::unique_lock lock(registry_->mutex);
        if (!drop_reference())
            return;
        if (is_registered_)
            deregister(lock);
    }
    delete this;
}

} // namespace turnstile::inline v0_1::detail
