// SPDX-License-Identifier: BSL-1.0
// The state word of a supervisor (supervision.hpp): the number of its parties, and the events that
// it has not handled yet. A party is an outstanding part of the call: an operation, a wait of the
// timer, a cancellation that is dispatched to the strand, or the initiating function.
//
// The bits:
// - 0x01 opened: the initiating function has ended. Before that, the word is not open: events stay
//   in it, and are not handled.
// - 0x02 completed: one or several operations have completed.
// - 0x04 expired: the timer has expired.
// - 0x08 dropped: a party was destroyed instead of completing, so the handler will be destroyed.
// - 0x10, 0x20, 0x40: the caller has cancelled, with type terminal, partial or total.
// - 0x80 wake: there is something to handle besides the events above, or an event is on its way to
//   the strand.
// - 0x100 and above: the number of parties.
//
// Invariant: the party that brings the number of parties to 0 is the only one left, and completes
// the call.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

// The events since the last call of handle().
struct supervised_events {
    bool completed;                      // one or several operations have completed
    bool expired;                        // the timer has expired
    asio::cancellation_type_t cancelled; // the caller has cancelled, with these types
};

class supervisor_word {
public:
    using bits = std::uint32_t;
    static constexpr bits completed = 2;
    static constexpr bits expired = 4;

    static constexpr bits cancelled(asio::cancellation_type_t type) noexcept
    {
        return (static_cast<bits>(type) << cancel_shift) & cancel_mask;
    }

    // Adds a party. The caller is a party itself.
    void join() noexcept { word_.fetch_add(party, std::memory_order_relaxed); }

    // Adds a party, unless there is none left.
    bool try_join() noexcept
    {
        bits now = word_.load(std::memory_order_relaxed);
        while (now >= party) {
            if (word_.compare_exchange_weak(now, now + party, std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    // Removes a party. Returns true for the last one.
    bool leave() noexcept
    {
        return (word_.fetch_sub(party, std::memory_order_acq_rel) >> party_shift) == 1;
    }

    // Adds events. Returns true if the word is open; then the caller handles the events.
    bool raise(bits events) noexcept
    {
        return (word_.fetch_or(events, std::memory_order_acq_rel) & opened) != 0;
    }

    // Called before an event is sent to the strand. If the word is not open, the strand opens it
    // later, behind the event.
    void announce() noexcept { raise(wake); }

    // Adds events for a party that has arrived on the strand. If the word is not open, the party
    // leaves in the same step. So when the word is opened, every remaining party will still handle
    // events.
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

    // Returns and clears the events.
    bits take() noexcept
    {
        return word_.fetch_and(~events_mask, std::memory_order_acq_rel) & events_mask;
    }

    // The end of the initiating function: opens the word and leaves. If there are events, it does
    // neither and returns false, because they must be handled first.
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

    // Opens the word if there is another party, which will handle the events. Returns whether there
    // is one.
    bool open_unless_last() noexcept
    {
        bits now = word_.load(std::memory_order_acquire);
        while ((now >> party_shift) != 1) {
            if (word_.compare_exchange_weak(now, now | opened, std::memory_order_acq_rel))
                return true;
        }
        return false;
    }

    // A party was destroyed instead of completing. Returns true if the word is open, as raise().
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

    std::atomic<bits> word_{party}; // one party, the initiating function; not open
};

} // namespace turnstile::inline v0_1::detail
