// SPDX-License-Identifier: BSL-1.0
// The state of a watch: the latest value, its version, and the operations that wait for another
// version. basic_watch owns it.
//
// Invariant: every waiter has seen the latest version. A new value therefore grants all waiters,
// and each of them reads the value that is the latest when it completes.
//
// watch_predicate_waiter, below, is the waiter of async_wait_for: it tests each value it is granted
// and waits again until the predicate accepts one.
#pragma once

#include <turnstile/channel/detail/shared_value_node.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

struct watch_waiter : waiter {
    using waiter::waiter;
    std::uint64_t seen = 0; // the version that the caller has seen
};

// The decision for a wait for a version other than `seen`, without the lock. `closed` is read
// before `version`: the version of a closed watch does not change. A template, so that a test can
// change both between the reads.
template <class Version, class Closed>
wait_decision watch_decision(const Version& version, const Closed& closed,
                             std::uint64_t seen) noexcept
{
    const bool was_closed = closed.load(std::memory_order_acquire);
    if (version.load(std::memory_order_acquire) != seen)
        return wait_decision::granted();
    return was_closed ? wait_decision::refused(errc::closed) : wait_decision::pending();
}

template <class Threading>
class TURNSTILE_EXPORT watch_state final : public wait_state<Threading> {
public:
    using threading_policy = Threading;
    using node = node_ptr<Threading>;

    // The version of the first value. No value has version 0.
    static constexpr std::uint64_t first_version = 1;

    struct snapshot {
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

    snapshot load() noexcept;

    wait_decision changed_since(std::uint64_t seen) const noexcept
    {
        return watch_decision(version_, closed_, seen);
    }

    // Exchanges the value with n and returns the new version, or 0 if the watch is closed.
    std::uint64_t store(node& n) noexcept;
    // The same if the version is `expected`; otherwise returns 0.
    std::uint64_t store_if(std::uint64_t expected, node& n) noexcept;

    // Queues a granted waiter again that has no use for version w.seen. Returns false if it cannot
    // wait again.
    bool wait_again(watch_waiter& w) noexcept;

    void close() noexcept;

private:
    std::uint64_t store_locked(node& n, ready_list& ready) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter&, ready_list&) noexcept override {}

    node value_;
    policy_atomic<Threading, std::uint64_t> version_{first_version}; // written under the lock
    policy_atomic<Threading, bool> closed_{false};                   // written under the lock
};

// Each time it is granted, this waiter calls its tester on the executor of the completion handler,
// without a lock. If the tester rejects the value, the same waiter is queued again.
template <class Threading>
class TURNSTILE_EXPORT watch_predicate_waiter : public watch_waiter {
public:
    class tester {
    public:
        // Tests the latest value and stores its version in `seen`.
        virtual wait_decision test(std::uint64_t& seen) noexcept = 0;

    protected:
        tester() = default;
        tester(const tester&) = default;
        tester& operator=(const tester&) = default;
        ~tester() = default;
    };

    // `complete` completes or destroys the operation.
    explicit watch_predicate_waiter(run_function complete) noexcept
        : watch_waiter(&watch_predicate_waiter::run), complete_(complete)
    {
    }

    // `t` belongs to the operation.
    void bind(tester& t, watch_state<Threading>& state) noexcept
    {
        tester_ = &t;
        state_ = &state;
    }

protected:
    ~watch_predicate_waiter() = default;

private:
    static void run(waiter& self, task_action action);
    bool waits_again() noexcept;

    run_function complete_;
    tester* tester_ = nullptr;
    boost::intrusive_ptr<watch_state<Threading>> state_;
};

extern template class watch_state<thread_safe>;
extern template class watch_state<strand_confined>;
extern template class watch_predicate_waiter<thread_safe>;
extern template class watch_predicate_waiter<strand_confined>;

} // namespace turnstile::inline v0_1::detail
