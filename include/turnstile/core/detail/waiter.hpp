#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/completion_target.hpp>
#include <turnstile/core/detail/postable.hpp>

#include <boost/asio/error.hpp>
#include <boost/intrusive/list.hpp>

namespace turnstile::detail {

class waiter;

// The part of a cancellation handler that its waiter knows; see canceller.hpp.
struct cancel_link {
    waiter* target = nullptr;
};

using waiter_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// One waiting operation: a node of a wait queue, with a fate that is decided exactly once
// under the object's lock, and revised at most once, by a cancellation.
class waiter : public postable, public waiter_hook {
public:
    using postable::postable;

    bool undecided() const noexcept { return fate_ == fate::undecided; }
    bool granted() const noexcept { return fate_ == fate::granted; }

    void grant() noexcept { fate_ = fate::granted; }
    void fail(error_code ec) noexcept
    {
        fate_ = fate::failed;
        error_ = ec;
    }
    void abort() noexcept { fail(asio::error::operation_aborted); }

    const error_code& error() const noexcept { return error_; }

    // Set while a cancellation handler points here; guarded by the object's lock.
    cancel_link* canceller = nullptr;
    // The executor that is to run the completion.
    const completion_target* target = nullptr;

protected:
    ~waiter() = default;

private:
    enum class fate : unsigned char { undecided, granted, failed };

    fate fate_ = fate::undecided;
    error_code error_;
};

using waiter_list = boost::intrusive::list<waiter, boost::intrusive::constant_time_size<false>>;

inline waiter& take_front(waiter_list& list) noexcept
{
    waiter& w = list.front();
    list.pop_front();
    return w;
}

} // namespace turnstile::detail
