// SPDX-License-Identifier: BSL-1.0
// The loads of a single_flight and of a cache, as far as they do not depend on the types of key and
// value: a *flight* is one load of one key, with the callers that wait for it. It runs detached
// from all of them. The operation, the key and the outcome are in flight.hpp.
//
// A caller pins the flight of its key before it waits, and unpins it when its operation ends. The
// last caller that unpins a flight cancels the load, unless it is a refresh, which needs no caller.
// A flight that was cancelled or superseded is not found any more, so that the next caller starts a
// fresh one; it keeps its callers, if it has any.
//
// The phases of a flight:
//   unstarted  Pinned by a caller that is about to wait.
//   starting   Its initiating function has not returned, or its start was posted to the strand. A
//              cancellation is stored, and posted when the function has returned; a posted start
//              then ends the flight instead.
//   running    A cancellation is posted to the strand of the load.
//   ended      It has an outcome, which does not change.
//
// Invariants: flights_ has each flight that has not ended, and owns a reference to it. A flight
// that starts, runs or is posted holds a reference to the state. It is posted to its strand, to
// start or to be cancelled, at most once at a time. No key, operation or outcome is copied,
// compared or destroyed under the lock.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/key_table.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/work/single_flight_stats.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class flight_state;

using flight_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

template <class Threading>
using flight_counter = std::conditional_t<Threading::is_confined, boost::thread_unsafe_counter,
                                          boost::thread_safe_counter>;

template <class Threading>
class TURNSTILE_EXPORT flight
    : public key_table_node,
      public flight_hook,
      public intrusive_task,
      public boost::intrusive_ref_counter<flight<Threading>, flight_counter<Threading>> {
public:
    explicit flight(std::size_t h) noexcept : key_table_node(h), intrusive_task(&flight::run_task)
    {
    }
    virtual ~flight() = default;

    // Starts the operation. Called once, in the phase `starting`.
    virtual void launch() noexcept = 0;
    // Emits the cancellation signal. Called on the strand.
    virtual void emit() noexcept = 0;
    // Posts this task to the strand. Returns false if its executor has no memory for it.
    virtual bool post_to_strand() noexcept = 0;
    // The strand is not used any more. Called on the strand.
    virtual void give_back_strand() noexcept = 0;
    // The operation is not started: destroys it, and stores the failure. `is_aborted`: because it
    // was cancelled or the context is being destroyed; otherwise there was no memory to post it.
    virtual void discard(bool is_aborted) noexcept = 0;

private:
    friend class flight_state<Threading>;
    enum class phase_type : unsigned char { unstarted, starting, running, ended };

    static void run_task(intrusive_task& task, task_action action);

    // The lock of the state guards all members.
    boost::intrusive_ptr<flight_state<Threading>> state_; // while it starts, runs or is posted
    waiter_list waiters_;
    flight* next_to_start_ = nullptr;
    std::size_t pins_ = 0;
    phase_type phase_ = phase_type::unstarted;
    bool is_current_ = false; // in the table
    bool is_posted_ = false;
    bool is_cancelled_ = false;
    bool is_refresh_ = false;
};

template <class Threading>
using flight_ptr = boost::intrusive_ptr<flight<Threading>>;

// Waits until all of its flights, which its operation has pinned, have ended.
template <class Threading>
struct flight_waiter : waiter {
    using waiter::waiter;
    std::span<const flight_ptr<Threading>> flights;
    std::size_t ended = 0; // it is queued at the first flight that has not ended
};

template <class Threading>
class TURNSTILE_EXPORT flight_state : public wait_state<Threading> {
public:
    using flight_type = flight<Threading>;
    using flight_pointer = flight_ptr<Threading>;
    using table = key_table<flight_type>;

    template <class Executor>
    explicit flight_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // The next flight with the hash, after the number `seen`, pinned. If there is none and `made`
    // is not null, inserts and pins `made`, provided that the table has storage for it: it may use
    // `storage`. Returns null if there is no such flight and none was inserted; `storage_needed` is
    // then the size of the storage that is required, or 0.
    flight_pointer find(std::size_t hash, std::uint64_t seen, flight_type* made,
                        typename table::storage& storage, std::size_t& storage_needed) noexcept;
    void unpin(flight_type& f) noexcept;
    // Counts a caller that has joined the flight of another one.
    void count_joined() noexcept;

    // Takes over the operation of a caller, then starts its flights.
    void start(waiter& w) noexcept final;
    // Starts a pinned flight without a waiter, on its strand. It is not cancelled for want of
    // callers.
    void start_refresh(flight_type& f) noexcept;
    // The flight has its outcome. `on_strand`: the call is on its strand.
    void end_flight(flight_type& f, bool succeeded, bool on_strand) noexcept;
    // The flight is not found any more.
    void supersede(flight_type& f) noexcept;
    void supersede_all() noexcept;
    // A hint: whether any flight exists. A flight that was started before the call counts.
    bool has_flights() const noexcept { return active_.load(std::memory_order_acquire) != 0; }

    // Cancels all loads.
    void cancel_all() noexcept;

    single_flight_stats stats() noexcept;

protected:
    // A load has ended: the three steps of a cache. loaded() is called first, without the lock, and
    // returns whether the load has succeeded. settle() is called under the lock, before the callers
    // are granted, with `is_current` if the flight was not superseded and the object exists.
    // settled() is called last, without the lock.
    virtual bool loaded(flight_type&, bool succeeded) noexcept { return succeeded; }
    virtual void settle(flight_type&, bool /*succeeded*/, bool /*is_current*/) noexcept {}
    virtual void settled(flight_type&) noexcept {}

private:
    friend flight_type;
    using phase_type = typename flight_type::phase_type;
    using flight_list =
        boost::intrusive::list<flight_type, boost::intrusive::base_hook<flight_hook>,
                               boost::intrusive::constant_time_size<false>>;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter&, ready_list&) noexcept override {}
    void take_all(waiter_list& out) noexcept override;

    // Under the lock.
    bool advance(flight_waiter<Threading>& w) noexcept;
    void remove_from_table(flight_type& f) noexcept;
    void begin(flight_type& f) noexcept;
    flight_pointer forget(flight_type& f) noexcept;
    // Returns whether the flight must be posted after the lock is released.
    [[nodiscard]] bool request_cancellation(flight_type& f) noexcept;
    [[nodiscard]] bool mark_posted(flight_type& f) noexcept;

    // Without the lock.
    void post(flight_type& f) noexcept;
    void run_start(flight_type& f) noexcept;
    void run_posted(flight_type& f) noexcept;
    void drop_posted(flight_type& f) noexcept;

    table table_;
    flight_list flights_;
    policy_atomic<Threading, std::size_t> active_{0}; // the size of flights_
    single_flight_stats totals_;
};

extern template class flight<thread_safe>;
extern template class flight<strand_confined>;
extern template class flight_state<thread_safe>;
extern template class flight_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
