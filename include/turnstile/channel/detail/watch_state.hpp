// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/value_node.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct change_waiter : waiter {
    using waiter::waiter;
    std::uint64_t seen = 0;
};

// What a wait for a version other than `seen` comes to, without the lock: so the end is looked
// for first, since the version that is the latest then stays so.
template <class Version, class Closed>
wait_decision watch_outlook(const Version& version, const Closed& closed,
                            std::uint64_t seen) noexcept
{
    const bool ended = closed.load(std::memory_order_acquire);
    if (version.load(std::memory_order_acquire) != seen)
        return wait_decision::granted();
    return ended ? wait_decision::refused(errc::closed) : wait_decision::pending();
}

// The latest value with its version, and those who wait for another. All of them have seen
// the latest: a new one lets all go, and each gets whatever is the latest when it arrives.
template <class Threading>
class TURNSTILE_EXPORT watch_state final : public wait_state<Threading> {
public:
    using threading_policy = Threading;
    using node = node_ptr<Threading>;

    // The version of the first value; no value has version 0.
    static constexpr std::uint64_t first = 1;

    struct latest {
        node value;
        std::uint64_t version = 0;
    };

    template <class Executor>
    watch_state(const Executor& executor, node value)
        : wait_state<Threading>(executor), value_(std::move(value))
    {
    }

    std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    latest load() noexcept;

    // Whether it is worth waiting for a version other than `seen`.
    wait_decision changed_since(std::uint64_t seen) const noexcept
    {
        return watch_outlook(version_, closed_, seen);
    }

    // Puts n in place of the value, which it takes; the new version, or 0 if it is closed.
    std::uint64_t store(node& n) noexcept;
    // The same, but only if the version is still `expected`; else 0 as well.
    std::uint64_t store_if(std::uint64_t expected, node& n) noexcept;

    // w, which was let go, has no use for version w.seen. False if it cannot wait again.
    bool wait_again(change_waiter& w) noexcept;

    void close() noexcept;

private:
    std::uint64_t store_locked(node& n, ready_list& ready) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter&, ready_list&) noexcept override {}

    node value_;
    policy_atomic<Threading, std::uint64_t> version_{first}; // written under the lock
    policy_atomic<Threading, bool> closed_{false};           // likewise
};

// A wait for a value that will do. Each time it is let go it asks its user, where the handler
// is to run and without a lock, and waits again in the same place if the answer is no.
template <class Threading>
class TURNSTILE_EXPORT search_waiter : public change_waiter {
public:
    class user {
    public:
        // Looks at the latest value, and says which that was.
        virtual wait_decision look(std::uint64_t& seen) noexcept = 0;

    protected:
        user() = default;
        user(const user&) = default;
        user& operator=(const user&) = default;
        ~user() = default;
    };

    // `complete` is what ends the operation, one way or the other.
    explicit search_waiter(run_function complete) noexcept
        : change_waiter(&search_waiter::run), complete_(complete)
    {
    }

    // `u` belongs to the operation.
    void bind(user& u, watch_state<Threading>& state) noexcept
    {
        user_ = &u;
        state_ = &state;
    }

protected:
    ~search_waiter() = default;

private:
    static void run(waiter& self, task_action action);
    bool goes_on() noexcept;

    run_function complete_;
    user* user_ = nullptr;
    boost::intrusive_ptr<watch_state<Threading>> state_;
};

extern template class watch_state<thread_safe>;
extern template class watch_state<strand_confined>;
extern template class search_waiter<thread_safe>;
extern template class search_waiter<strand_confined>;

} // namespace turnstile::inline v0_1::detail
