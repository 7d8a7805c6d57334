#pragma once

#include <turnstile/core/detail/waiter.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>

namespace turnstile::detail {

template <class Threading>
class wait_state;

// How decided waiters reach their executors. Called without the lock.
template <class Threading>
class delivery;

// One post for each waiter, so that a pool runs them in parallel and none waits for another.
template <>
class TURNSTILE_EXPORT delivery<thread_safe> {
public:
    explicit delivery(wait_state<thread_safe>& owner) noexcept : owner_(owner) {}

    void send(waiter_list& ready) noexcept
    {
        while (!ready.empty())
            send_one(take_front(ready), ready);
    }
    void send_one(waiter& w, waiter_list& ready) noexcept
    {
        if (!w.target->post(w)) [[unlikely]]
            give_up(w, ready);
    }

private:
    void give_up(waiter& w, waiter_list& ready) noexcept;

    wait_state<thread_safe>& owner_;
};

// One post for all that are ready: they share a strand, so they run one after the other
// anyway. After a bounded batch the rest is posted anew, to let other handlers in.
template <>
class TURNSTILE_EXPORT delivery<strand_confined> : postable {
public:
    explicit delivery(wait_state<strand_confined>& owner) noexcept
        : postable(&delivery::run), owner_(owner)
    {
    }
    void send(waiter_list& ready) noexcept;

private:
    static constexpr int batch = 128;

    static void run(postable& self, how what);
    void schedule() noexcept;
    void drain();
    void discard();

    wait_state<strand_confined>& owner_;
    waiter_list ready_;
    bool scheduled_ = false;
};

} // namespace turnstile::detail
