// SPDX-License-Identifier: BSL-1.0
// The backend of a resource pool under test: it counts the resources and the operations, and
// decides how operations end.
#pragma once

#include "kit/manual_clock.hpp"

#include <turnstile/sync/event.hpp>
#include <turnstile/work/resource_pool.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

namespace kit {

// The end of an operation.
enum class behaviour {
    succeeds, // after a trip through the executor
    fails,    // with an error code, as an exception
    throws,   // an exception without an error code
    says_no,  // a check that reports false
    hangs,    // until it is cancelled
    is_deaf,  // hangs, and ignores its cancellation, until let_go()
};

struct pool_backend {
    explicit pool_backend(asio::io_context& io) : gate(io), door(io) {}

    // A resource, which is counted while it is alive.
    class resource {
    public:
        resource(pool_backend& b, int number) : id(number), owner_(&b)
        {
            b.most_alive = std::max(b.most_alive, ++b.alive);
        }
        resource(resource&& other) noexcept
            : id(other.id), owner_(std::exchange(other.owner_, nullptr))
        {
        }
        resource& operator=(resource&& other) noexcept
        {
            std::swap(id, other.id);
            std::swap(owner_, other.owner_);
            return *this;
        }
        ~resource()
        {
            if (owner_)
                --owner_->alive;
        }
        int id;

    private:
        pool_backend* owner_;
    };

    asio::awaitable<void> act(behaviour how)
    {
        ++running;
        struct at_end {
            int& n;
            ~at_end() { --n; }
        } const end{running};
        switch (how) {
        case behaviour::fails:
            throw boost::system::system_error(asio::error::connection_refused);
        case behaviour::throws:
            throw std::runtime_error("no resource");
        case behaviour::hangs:
            co_await gate.async_wait(asio::use_awaitable);
            break;
        case behaviour::is_deaf:
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await door.async_wait(asio::use_awaitable);
            break;
        default:
            co_await asio::post(asio::use_awaitable);
        }
    }
    // Ends the operations that hang, and lets later ones that hang succeed.
    void let_go()
    {
        gate.set();
        door.set();
    }

    // All operations, or those that a test leaves.
    turnstile::resource_operations<resource> operations()
    {
        return {.create = create(), .check = check(), .reset = reset(), .close = close()};
    }
    std::function<asio::awaitable<resource>()> create()
    {
        return [this]() -> asio::awaitable<resource> {
            ++creations;
            co_await act(on_create);
            co_return resource(*this, ++created);
        };
    }
    std::function<asio::awaitable<bool>(resource&)> check()
    {
        return [this](resource&) -> asio::awaitable<bool> {
            ++checks;
            const behaviour how = on_check;
            co_await act(how);
            co_return how != behaviour::says_no;
        };
    }
    std::function<asio::awaitable<void>(resource&)> reset()
    {
        return [this](resource&) -> asio::awaitable<void> {
            ++resets;
            co_await act(on_reset);
        };
    }
    std::function<asio::awaitable<void>(resource&)> close()
    {
        return [this](resource&) -> asio::awaitable<void> {
            ++closes;
            co_await act(on_close);
        };
    }

    behaviour on_create = behaviour::succeeds;
    behaviour on_check = behaviour::succeeds;
    behaviour on_reset = behaviour::succeeds;
    behaviour on_close = behaviour::succeeds;
    int creations = 0; // started
    int created = 0;
    int checks = 0;
    int resets = 0;
    int closes = 0;
    int running = 0;
    int alive = 0;
    int most_alive = 0;
    turnstile::event gate;
    turnstile::event door;
};

template <class Threading>
using pool_of = turnstile::basic_resource_pool<pool_backend::resource, asio::any_io_executor,
                                               Threading, manual_clock>;

} // namespace kit
