#pragma once

#include <turnstile/channel/detail/value_node.hpp>
#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <atomic>
#include <cstdint>

namespace turnstile::detail {

struct change_waiter : waiter {
    using waiter::waiter;
    std::uint64_t seen = 0;
};

// What a wait for a version other than `seen` comes to, without the lock: so the end is looked
// for first, since the version that is the latest then stays so.
template <class Version, class Closed>
verdict watch_outlook(const Version& version, const Closed& closed, std::uint64_t seen) noexcept
{
    const bool ended = closed.load(std::memory_order_acquire);
    if (version.load(std::memory_order_acquire) != seen)
        return verdict::granted();
    return ended ? verdict::refused(errc::closed) : verdict::wait();
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
    verdict changed_since(std::uint64_t seen) const noexcept
    {
        return watch_outlook(version_, closed_, seen);
    }

    // Puts n in place of the value, which it takes; the new version, or 0 if it is closed.
    std::uint64_t store(node& n) noexcept;
    // The same, but only if the version is still `expected`; else 0 as well.
    std::uint64_t store_if(std::uint64_t expected, node& n) noexcept;

    void close() noexcept;

private:
    std::uint64_t store_locked(node& n, ready_list& ready) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter&, ready_list&) noexcept override {}

    node value_;
    typename Threading::template cell<std::uint64_t> version_{first}; // written under the lock
    typename Threading::template cell<bool> closed_{false};           // likewise
};

extern template class watch_state<thread_safe>;
extern template class watch_state<strand_confined>;

} // namespace turnstile::detail
