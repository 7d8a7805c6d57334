// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

// What has happened since handle() was called last.
struct supervised_events {
    bool completed;                      // an operation, or several
    bool expired;                        // the timer
    asio::cancellation_type_t cancelled; // by the caller
};

// Parties and events of a supervisor, in one word.
class supervisor_word {
public:
    using bits = std::uint32_t;
    static constexpr bits completed = 2;
    static constexpr bits expired = 4;

    static constexpr bits cancelled(asio::cancellation_type_t type) noexcept
    {
        return (static_cast<bits>(type) << cancel_shift) & cancel_mask;
    }

    void join() noexcept { word_.fetch_add(party, std::memory_order_relaxed); }

    bool try_join() noexcept
    {
        bits now = word_.load(std::memory_order_relaxed);
        while (now >= party) {
            if (word_.compare_exchange_weak(now, now + party, std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    // True for the last one.
    bool leave() noexcept
    {
        return (word_.fetch_sub(party, std::memory_order_acq_rel) >> party_shift) == 1;
    }

    // True if the gate is open, that is, the caller is to look at the events.
    bool raise(bits events) noexcept
    {
        return (word_.fetch_or(events, std::memory_order_acq_rel) & opened) != 0;
    }

    // The same for a party that has come to the strand; but at a closed gate it leaves in the
    // same step. So whoever opens the gate knows that those who are still there will look.
    bool raise_or_leave(bits events, bool& last) noexcept
    {
        bits now = word_.load(std::memory_order_relaxed);
        for (;;) {
            const bool is_open = (now & opened) != 0;
            const bits next = (is_open ? now : now - party) | events;
            if (word_.compare_exchange_weak(now, next, std::memory_order_acq_rel)) {
                last = !is_open && (now >> party_shift) == 1;
                return is_open;
            }
        }
    }

    // The events so far, each told once.
    bits take() noexcept
    {
        return word_.fetch_and(~events_mask, std::memory_order_acq_rel) & events_mask;
    }

    // The initiating function has done its part: opens the gate and leaves. But if something
    // has happened already it does neither, and returns false: somebody must look at it.
    bool open_and_leave(bool& last) noexcept
    {
        bits now = word_.load(std::memory_order_acquire);
        while ((now & events_mask) == 0) {
            if (word_.compare_exchange_weak(now, (now - party) | opened,
                                            std::memory_order_acq_rel)) {
                last = (now >> party_shift) == 1;
                return true;
            }
        }
        return false;
    }

    void open() noexcept { word_.fetch_or(opened, std::memory_order_acq_rel); }

    // Opens the gate if there is another party, which looks when it comes.
    bool open_unless_last() noexcept
    {
        bits now = word_.load(std::memory_order_acquire);
        while ((now >> party_shift) != 1) {
            if (word_.compare_exchange_weak(now, now | opened, std::memory_order_acq_rel))
                return true;
        }
        return false;
    }

    // Whether a party was dropped instead of completing: then the handler is dropped, too.
    // True if the gate is open, as with raise().
    bool drop() noexcept { return raise(dropped | wake); }
    void undrop() noexcept { word_.fetch_and(~dropped, std::memory_order_acq_rel); }
    bool is_dropped() const noexcept
    {
        return (word_.load(std::memory_order_acquire) & dropped) != 0;
    }

    static supervised_events events(bits taken) noexcept
    {
        return {(taken & completed) != 0, (taken & expired) != 0,
                static_cast<asio::cancellation_type_t>((taken & cancel_mask) >> cancel_shift)};
    }

private:
    static constexpr bits opened = 1;
    static constexpr bits dropped = 8;
    static constexpr bits cancel_shift = 4;
    static constexpr bits cancel_mask = 7U << cancel_shift; // terminal, partial, total
    static constexpr bits wake = 0x80;
    static constexpr bits party_shift = 8;
    static constexpr bits party = 1U << party_shift;
    static constexpr bits events_mask = completed | expired | cancel_mask | wake;

    std::atomic<bits> word_{party}; // the initiating function, behind a closed gate
};

} // namespace turnstile::inline v0_1::detail
