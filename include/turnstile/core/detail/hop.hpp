#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/postable.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>

#include <utility>

namespace turnstile::detail {

// Something on its way from an object's executor to a handler's. It does not know the handler's
// type, so that a dispatch is compiled for each executor, and not for each operation.
class hop {
public:
    // What is done there with what was sent; or it is destroyed, if it never arrives.
    using land_function = void (*)(void*, how);

    hop(void* what, land_function land) noexcept : what_(what), land_(land) {}
    hop(hop&& other) noexcept : what_(std::exchange(other.what_, nullptr)), land_(other.land_) {}
    hop& operator=(hop&&) = delete;
    ~hop()
    {
        if (what_)
            land_(what_, how::destroy);
    }

    void operator()() { land_(std::exchange(what_, nullptr), how::invoke); }

private:
    void* what_;
    land_function land_;
};

template <class Executor, class Allocator>
void dispatch_hop(const Executor& executor, const Allocator& allocator, hop h)
{
    asio::dispatch(executor, asio::bind_allocator(allocator, std::move(h)));
}

} // namespace turnstile::detail
