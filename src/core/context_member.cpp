#include <turnstile/core/detail/context_member.hpp>

#include <boost/intrusive/list.hpp>

#include <mutex>

namespace turnstile::detail {

class wait_service final : public boost::asio::execution_context::service {
public:
    using key_type = wait_service;
    static boost::asio::execution_context::id id;

    explicit wait_service(boost::asio::execution_context& context) : service(context) {}

    void add(context_member& member)
    {
        std::scoped_lock lock(mutex_);
        members_.push_back(member);
    }

    void remove(context_member& member) noexcept
    {
        std::scoped_lock lock(mutex_);
        members_.erase(members_.iterator_to(member));
    }

private:
    // Destroying one member's handlers may destroy other members: take them one by one.
    void shutdown() override
    {
        while (context_member* member = take_one())
            member->shut_down();
    }

    context_member* take_one() noexcept
    {
        std::scoped_lock lock(mutex_);
        if (members_.empty())
            return nullptr;
        context_member& member = members_.front();
        members_.pop_front();
        member.service_ = nullptr;
        return &member;
    }

    std::mutex mutex_;
    boost::intrusive::list<context_member> members_;
};

boost::asio::execution_context::id wait_service::id;

context_member::context_member(boost::asio::execution_context& context)
    : service_(&boost::asio::use_service<wait_service>(context))
{
    service_->add(*this);
}

context_member::~context_member()
{
    if (service_)
        service_->remove(*this);
}

} // namespace turnstile::detail
