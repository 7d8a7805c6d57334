#pragma once

#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/detail/wait_state.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>

#include <cstdint>
#include <limits>

namespace turnstile::detail {

struct permit_waiter : waiter {
    using waiter::waiter;
    std::uint64_t need = 1;
};

// Permits, and a FIFO of those who wait for some: what mutex, semaphore and
// auto_reset_event are made of.
//
// One word holds the permits and three flags. While nobody waits it changes by
// compare-and-swap; while `contended` is set, only under the lock, and every fast path
// stands back. So nobody overtakes a waiter. Once `resized`, permits come back only under the
// lock: elsewhere, what fits below a maximum that may change is not to be told.
template <class Threading>
class TURNSTILE_EXPORT permit_gate : public wait_state<Threading> {
public:
    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max() >> 3;

    template <class Executor>
    permit_gate(const Executor& executor, std::uint64_t permits, std::uint64_t maximum)
        : wait_state<Threading>(executor), word_(permits * one), maximum_(maximum)
    {
    }

    std::uint64_t available() const noexcept { return word_.load(std::memory_order_acquire) / one; }
    std::uint64_t maximum() const noexcept { return maximum_.load(std::memory_order_acquire); }
    bool is_closed() const noexcept { return word_.load(std::memory_order_acquire) & closed; }

    bool try_acquire(std::uint64_t n) noexcept
    {
        const auto take = [n](std::uint64_t& word) noexcept {
            if ((word & (contended | closed)) != 0 || word / one < n)
                return false;
            word -= n * one;
            return true;
        };
        return word_.update(take, std::memory_order_acquire);
    }

    // The fast path of a wait for n permits.
    TURNSTILE_HOT verdict try_now(std::uint64_t n) noexcept
    {
        if (n != 0 && try_acquire(n)) [[likely]]
            return verdict::granted();
        return explain(n);
    }

    // Returns n permits; false, and no change, if that would exceed the maximum. Either way
    // the word is written, so that whoever acquires next sees what the caller did before.
    bool release(std::uint64_t n) noexcept
    {
        bool fits = false;
        return release_quickly(n, fits) ? fits : release_contended(n);
    }

    // Changes the maximum, and what is available by as much; permits that are out beyond the
    // new maximum are withheld as they come back. Waiters who now ask for too much are told.
    void resize(std::uint64_t maximum) noexcept;

    // Fails every waiter, and every later acquisition, with errc::closed.
    void close() noexcept;

protected:
    // For those who add to it (bulkhead). The fast path of release(): false, and nothing is
    // done, if it takes the lock.
    bool release_quickly(std::uint64_t n, bool& fits) noexcept
    {
        const auto put = [&](std::uint64_t& word) noexcept {
            if (word & (contended | resized))
                return false;
            fits = n <= maximum_.load(std::memory_order_relaxed) - word / one;
            word += fits ? n * one : 0;
            return true;
        };
        return word_.update(put, std::memory_order_acq_rel);
    }
    // All else under the lock.
    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override { serve(ready); }
    void take_back(waiter& w, ready_list& ready) noexcept override;
    bool put(std::uint64_t n, ready_list& ready) noexcept;
    void set_maximum(std::uint64_t maximum, ready_list& ready) noexcept;
    std::uint64_t in_use() const noexcept { return maximum() + withheld_ - available(); }

private:
    static constexpr std::uint64_t contended = 1;
    static constexpr std::uint64_t closed = 2;
    static constexpr std::uint64_t resized = 4;
    static constexpr std::uint64_t one = 8;

    bool release_contended(std::uint64_t n) noexcept;
    TURNSTILE_COLD bool release_crowded(std::uint64_t n) noexcept;
    // Why n permits were not to be had at once.
    TURNSTILE_HOT verdict explain(std::uint64_t n) const noexcept
    {
        if (n == 0)
            return verdict::refused(errc::invalid_argument);
        if (is_closed())
            return verdict::refused(errc::closed);
        return n > maximum() ? verdict::refused(errc::too_large) : verdict::wait();
    }

    std::uint64_t set_flags(std::uint64_t flags) noexcept;
    waiter* hand_over(std::uint64_t n) noexcept;
    // Grants in order as many as there are permits for, each through grant(waiter&).
    template <class Grant>
    void serve_with(Grant grant) noexcept;
    void serve(ready_list& ready) noexcept;
    void serve_newcomer() noexcept;
    permit_waiter& head() noexcept { return static_cast<permit_waiter&>(this->queue_.front()); }

    typename Threading::template cell<std::uint64_t> word_;
    typename Threading::template cell<std::uint64_t> maximum_;
    std::uint64_t withheld_ = 0; // by resize(), from what comes back; guarded by the lock
};

extern template class permit_gate<thread_safe>;
extern template class permit_gate<strand_confined>;

} // namespace turnstile::detail
