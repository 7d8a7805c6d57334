// SPDX-License-Identifier: BSL-1.0
// The rules of a resource_pool without I/O, clock, lock or resource: slots and times go in, actions
// come out. resource_pool_state calls it under its lock, and carries the actions out without it.
//
// A slot is the place of one resource. Its phases:
//   creating    the creation runs
//   idle        can be leased; in idle_
//   leased      held by a lease, or granted to a waiter
//   checking, resetting, closing    that operation runs, or is in starts_ to be started
//   gone        in no list of the machine; perhaps its operation still runs, or it is in released_
//
// The actions, which the caller takes out:
//   creations    begin_creation(slot) as often as it returns true: create a resource
//   starts       next_start(): start the operation of the slot's phase
//   released     take_released(): cancel the operation of the slot, if it runs; otherwise destroy
//                the resource, and call destroyed() if keeps_place(); drop the machine's reference
//
// Invariants: the machine owns a reference to each slot in all_ and released_. size() counts slots
// from the decision to create until their resource is destroyed, and a creation is only decided
// below the maximum. An operation whose time is over makes its slot gone at once, so that no
// operation that hangs keeps a place.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/resource_pool_options.hpp>

#include <boost/assert/source_location.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <cstddef>
#include <cstdint>

namespace turnstile::inline v0_1::detail {

enum class slot_phase : std::uint8_t {
    creating,
    idle,
    leased,
    checking,
    resetting,
    closing,
    gone,
};

struct all_slots_tag;
struct slot_work_tag;
template <class Tag>
using slot_hook =
    boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>,
                                     boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// The place of a resource, which a derived class contains.
class TURNSTILE_EXPORT pool_slot : public slot_hook<all_slots_tag>,
                                   public slot_hook<slot_work_tag>,
                                   public boost::intrusive_ref_counter<pool_slot> {
public:
    pool_slot() noexcept = default;
    pool_slot(const pool_slot&) = delete;
    pool_slot& operator=(const pool_slot&) = delete;
    virtual ~pool_slot();

    slot_phase phase() const noexcept { return phase_; }
    // Whether the place of a released slot is kept until its resource is destroyed.
    bool keeps_place() const noexcept { return keeps_place_; }
    virtual void destroy_resource() noexcept;

    // For the state: the operation that runs, and where the lease was acquired.
    void* call = nullptr;
    boost::source_location where;

private:
    friend class resource_pool_machine;

    slot_phase phase_ = slot_phase::creating;
    bool is_started_ = false;  // its operation is not in starts_
    bool is_reported_ = false; // as overdue
    bool keeps_place_ = false;
    bool is_background_check_ = false; // no caller has needed it
    std::uint32_t round_ = 0;          // of its creation
    std::uint64_t turn_ = 0;           // of the machine, when it was created or checked
    std::uint64_t uses_ = 0;
    nanoseconds expires_{};  // the end of its lifetime
    nanoseconds since_{};    // idle or leased since
    nanoseconds proven_{};   // created, checked or returned
    nanoseconds deadline_{}; // of its operation
};

using pool_slot_ptr = boost::intrusive_ptr<pool_slot>;
using slot_work_list =
    boost::intrusive::list<pool_slot, boost::intrusive::base_hook<slot_hook<slot_work_tag>>>;

class TURNSTILE_EXPORT resource_pool_machine {
public:
    static constexpr nanoseconds never = nanoseconds::max();
    // After so many failed checks in a row, the idle slots that would be checked next are closed.
    static constexpr unsigned max_failed_checks = 3;

    // The operations that exist beside the creation.
    struct abilities {
        bool check = false;
        bool reset = false;
        bool close = false;
    };
    class observer {
    public:
        virtual void on_event(const resource_pool_event& event) noexcept = 0;

    protected:
        ~observer() = default;
    };

    // Throws errc::invalid_argument if an option breaks its rule.
    resource_pool_machine(const resource_pool_options& options, abilities has, observer& events,
                          std::uint64_t seed);
    ~resource_pool_machine();

    // Whether take() and give_back() need the time; otherwise any time may be passed.
    bool needs_clock() const noexcept { return needs_clock_; }
    bool reports_leaks() const noexcept { return options_.leak_threshold != never; }

    // Leases an idle slot that needs no check. Returns null if there is none.
    pool_slot* take(nanoseconds now) noexcept;
    // The lease has ended. `is_used` is false if no holder ever had it.
    void give_back(pool_slot& s, nanoseconds now, bool is_used) noexcept;
    // The same if the slot becomes idle at once and no action follows; otherwise returns false, and
    // changes nothing.
    TURNSTILE_HOT bool give_back_quickly(pool_slot& s, nanoseconds now,
                                         nanoseconds wakes_at) noexcept
    {
        if (!is_plain_ || !is_reusable(s)) [[unlikely]]
            return give_back_timed(s, now, wakes_at);
        ++s.uses_;
        --in_use_;
        s.phase_ = slot_phase::idle;
        idle_.push_back(s);
        return true;
    }
    // Ends a lease, and gives the slot to the next one, for a waiter; otherwise returns false, and
    // changes nothing.
    bool renew(pool_slot& s, nanoseconds now) noexcept;
    void discard(pool_slot& s, nanoseconds now) noexcept;
    void detach(pool_slot& s) noexcept;
    // A slot with a resource from elsewhere. Returns false if there is no place for it.
    bool add(pool_slot& s, nanoseconds now) noexcept;

    // Decides on checks and creations, for `waiting` callers that no idle slot can be leased to.
    void plan(nanoseconds now, std::size_t waiting) noexcept;
    // Closes what is over, and ends operations whose time is over. Returns the number of creations
    // that have failed by that.
    std::size_t expire(nanoseconds now) noexcept;
    // When expire() and plan() must be called: at this time, or earlier.
    nanoseconds wake_time() const noexcept;

    // The actions.
    bool has_starts() const noexcept { return has_creations() || !starts_.empty(); }
    bool has_actions() const noexcept { return has_starts() || !released_.empty(); }
    bool has_creations() const noexcept { return creations_due_ != 0 && !suspended_; }
    bool begin_creation(pool_slot& s, nanoseconds now) noexcept;
    pool_slot_ptr next_start() noexcept;
    void take_released(slot_work_list& out) noexcept { out.splice(out.end(), released_); }
    // The resources of `n` slots that keep their place were destroyed.
    void destroyed(std::size_t n) noexcept { destroying_ -= n; }

    // The ends of operations. Not called for a slot that is gone.
    void created(pool_slot& s, nanoseconds now) noexcept;
    void creation_failed(pool_slot& s, nanoseconds now, const error_code& cause) noexcept;
    // The creation could not be begun.
    void creation_failed(nanoseconds now, const error_code& cause) noexcept;
    void checked(pool_slot& s, nanoseconds now, bool is_usable) noexcept;
    void reset_ended(pool_slot& s, nanoseconds now, bool succeeded) noexcept;
    void closed(pool_slot& s) noexcept;

    bool resize(std::size_t max_size, nanoseconds now) noexcept;
    void evict_idle(nanoseconds now) noexcept;
    void set_suspended(bool suspended) noexcept;
    bool is_suspended() const noexcept { return suspended_; }
    // No lease is given from here on. Creations end; all other slots are closed when they can be.
    void close(nanoseconds now) noexcept;
    bool is_closed() const noexcept { return closed_; }
    bool is_drained() const noexcept { return closed_ && all_.empty() && destroying_ == 0; }
    // Releases every slot that is not leased, without closing it.
    void abandon() noexcept;

    // Whether callers fail with the cause of the last failed creation.
    bool refuses(nanoseconds now) const noexcept
    {
        return fail_fast() && is_down_ && now < retry_at_;
    }
    bool fail_fast() const noexcept { return options_.fail_fast; }
    bool is_down() const noexcept { return is_down_; }
    std::size_t size() const noexcept { return all_.size() + creations_due_ + destroying_; }
    std::size_t in_use() const noexcept { return in_use_; }
    std::size_t max_size() const noexcept { return options_.max_size; }
    std::size_t max_waiters() const noexcept { return options_.max_waiters; }
    void write(resource_pool_stats& stats) const noexcept;

private:
    using all_list =
        boost::intrusive::list<pool_slot, boost::intrusive::base_hook<slot_hook<all_slots_tag>>>;

    static const resource_pool_options& validated(const resource_pool_options& options);
    bool needs_check(const pool_slot& s, nanoseconds now) const noexcept;
    bool must_close(const pool_slot& s, nanoseconds now, eviction_reason& reason) const noexcept;
    pool_slot& next_idle() noexcept;
    void leave_idle(pool_slot& s) noexcept;
    bool give_back_timed(pool_slot& s, nanoseconds now, nanoseconds wakes_at) noexcept;
    // Whether the slot can be leased again, as far as that does not depend on the time.
    bool is_reusable(const pool_slot& s) const noexcept
    {
        return !closed_ && live() <= options_.max_size && s.uses_ + 1 < options_.max_uses;
    }
    // The slot has a resource, and no operation runs: idle, or closing.
    void settle(pool_slot& s, nanoseconds now) noexcept;
    void make_idle(pool_slot& s) noexcept;
    void arm(pool_slot& s, slot_phase phase, nanoseconds now) noexcept;
    void begin(pool_slot& s, slot_phase phase, nanoseconds now) noexcept;
    void end_operation(pool_slot& s) noexcept;
    void evict(pool_slot& s, eviction_reason reason, nanoseconds now, bool may_close) noexcept;
    void release(pool_slot& s) noexcept;
    void release_after_destruction(pool_slot& s) noexcept;
    void note_failure(std::uint32_t round, nanoseconds now, const error_code& cause) noexcept;
    void note_failed_check(nanoseconds now) noexcept;
    std::size_t& running(slot_phase phase) noexcept;
    nanoseconds timeout(slot_phase phase) const noexcept;
    // The time at which an idle or leased slot needs expire().
    nanoseconds due(const pool_slot& s) const noexcept;
    void expect(const pool_slot& s) noexcept;
    std::size_t live() const noexcept { return all_.size() + creations_due_ - closing_; }

    resource_pool_options options_;
    const abilities has_;
    observer& events_;
    const bool needs_clock_;
    const bool is_plain_; // a returned slot becomes idle, whatever the time
    bool closed_ = false;
    bool suspended_ = false;
    bool is_down_ = false;
    bool awaits_retry_ = false; // a creation is wanted at retry_at_
    unsigned failed_checks_ = 0;
    std::uint32_t round_ = 0; // of creations; the next one begins with a failure
    std::uint64_t turn_ =
        1;                // the number of calls of plan(): a slot that was just checked is leased
    std::size_t initial_; // creations of the initial size that were not decided yet
    std::size_t creations_due_ = 0;
    std::size_t in_use_ = 0;
    std::size_t creating_ = 0;
    std::size_t checking_ = 0;
    std::size_t resetting_ = 0;
    std::size_t closing_ = 0;
    std::size_t destroying_ = 0; // released slots that keep their place
    nanoseconds retry_at_ = nanoseconds::min();
    nanoseconds operations_wake_ = never; // not later than the first deadline of an operation
    nanoseconds slots_wake_ = never;      // not later than the first due() of a slot
    all_list all_;
    slot_work_list idle_;
    slot_work_list starts_;
    slot_work_list released_;
    random_source random_;
    backoff_machine backoff_;
    resource_pool_stats totals_;
};

} // namespace turnstile::inline v0_1::detail
