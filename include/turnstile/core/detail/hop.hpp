#pragma once

#include <turnstile/core/detail/waiter.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>

#include <utility>

namespace turnstile::detail {

// An operation on its way from the object's executor to its handler's. It does not know the
// handler's type, so that a dispatch is compiled for each executor, and not for each operation.
class hop {
public:
    // What is done there; or destroy, if it never arrives.
    using land_function = void (*)(waiter&, how);

    hop(waiter& w, land_function land) noexcept : waiter_(&w), land_(land) {}
    hop(hop&& other) noexcept : waiter_(std::exchange(other.waiter_, nullptr)), land_(other.land_)
    {
    }
    hop& operator=(hop&&) = delete;
    ~hop()
    {
        if (waiter_)
            land_(*waiter_, how::destroy);
    }

    void operator()() { land_(*std::exchange(waiter_, nullptr), how::invoke); }

private:
    waiter* waiter_;
    land_function land_;
};

template <class Executor, class Allocator>
void dispatch_hop(const Executor& executor, const Allocator& allocator, hop h)
{
    asio::dispatch(executor, asio::bind_allocator(allocator, std::move(h)));
}

} // namespace turnstile::detail
