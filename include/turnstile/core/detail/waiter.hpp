#pragma once

#include <turnstile/core/detail/completion_target.hpp>
#include <turnstile/core/detail/postable.hpp>
#include <turnstile/core/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>

namespace turnstile::detail {

class waiter;
class detour;

// The part of a cancellation handler that its waiter knows; see canceller.hpp.
struct cancel_link {
    waiter* target = nullptr;
};

using waiter_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// One waiting operation: a node of a wait queue, with a fate that is decided exactly once
// under the object's lock, and revised at most once, by a cancellation; unless it waits again.
class waiter : public waiter_hook {
public:
    using run_function = void (*)(waiter&, how);

    explicit waiter(run_function run) noexcept : run_(run) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    void invoke() { run_(*this, how::invoke); }
    void destroy() { run_(*this, how::destroy); }

    bool undecided() const noexcept { return fate_ == open_fate; }
    bool granted() const noexcept { return fate_ == granted_fate; }

    void grant() noexcept { fate_ = granted_fate; }
    void fail(errc code) noexcept { fate_ = static_cast<int>(code); }
    void abort() noexcept { fate_ = aborted_fate; }
    void reopen() noexcept { fate_ = open_fate; }

    error_code error() const noexcept
    {
        if (fate_ > 0)
            return static_cast<errc>(fate_);
        return fate_ == aborted_fate ? error_code(asio::error::operation_aborted) : error_code();
    }

    // Set while a cancellation handler points here; guarded by the object's lock.
    cancel_link* canceller = nullptr;
    // The way to the executor that is to run the completion, if not the object's own.
    detour* elsewhere = nullptr;

protected:
    ~waiter() = default;

private:
    // Above these, a fate is the errc the waiter fails with.
    static constexpr int granted_fate = 0;
    static constexpr int open_fate = -1;
    static constexpr int aborted_fate = -2;

    run_function run_;
    int fate_ = open_fate;
};

// What is posted for a waiter that does not complete on the object's own executor.
class detour : public postable {
public:
    detour(const completion_target& target, waiter& w) noexcept
        : postable(&detour::run), target_(target), waiter_(&w)
    {
    }

    bool post() noexcept { return target_.post(*this); }

private:
    static void run(postable& self, how what)
    {
        waiter& w = *static_cast<detour&>(self).waiter_;
        if (what == how::invoke)
            w.invoke();
        else
            w.destroy();
    }

    completion_target target_;
    waiter* waiter_;
};

using waiter_list = boost::intrusive::list<waiter, boost::intrusive::constant_time_size<false>>;

// Where waiters go whose fate is decided: to those that complete on the object's own
// executor, or to those that do not. `waiting` counts those that are not here yet.
class ready_list {
public:
    ready_list(waiter_list& home, std::size_t& waiting) noexcept : home_(home), waiting_(waiting) {}

    void push_back(waiter& w) noexcept
    {
        --waiting_;
        (w.elsewhere ? elsewhere_ : home_).push_back(w);
    }
    waiter_list& elsewhere() noexcept { return elsewhere_; }

private:
    waiter_list& home_;
    std::size_t& waiting_;
    waiter_list elsewhere_;
};

inline waiter& take_front(waiter_list& list) noexcept
{
    waiter& w = list.front();
    list.pop_front();
    return w;
}

} // namespace turnstile::detail
