// SPDX-License-Identifier: BSL-1.0
// The state of a task_group: its places, the children that run, wait for a place or have a result
// that was not taken, and the waiters of async_join, async_spawn and async_next. It does not depend
// on the operations of the children, which are in task_group_child.hpp.
//
// A place is taken by a child that runs, by a granted async_spawn that has not started its child,
// and, in a group with results, by a result that was not taken. Once a join has begun, results take
// no place, so that a join cannot wait for a caller that takes results.
//
// The phases of a child (group_child::phase):
//   queued     In queued_, which owns a reference. Has no place.
//   starting   In running_; its initiating function has not returned. A cancellation is stored, and
//              the thread that starts the child posts it afterwards.
//   running    In running_. A cancellation is posted to the strand of the child.
//   ended      In no list, or in results_, which owns a reference.
//
// Invariants: a child that runs holds a reference to the state, other children do not, because the
// state owns them. No operation, result or exception is destroyed under the lock. A child is posted
// to its strand, to start or to be cancelled, at most once at a time (is_posted).
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>
#include <turnstile/work/task_group_options.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class task_group_state;

using child_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

template <class Threading>
using child_counter = std::conditional_t<Threading::is_confined, boost::thread_unsafe_counter,
                                         boost::thread_safe_counter>;

template <class Threading>
class TURNSTILE_EXPORT group_child
    : public child_hook,
      public intrusive_task,
      public boost::intrusive_ref_counter<group_child<Threading>, child_counter<Threading>> {
public:
    enum class phase_type : unsigned char { queued, starting, running, ended };

    explicit group_child(std::string name)
        : intrusive_task(&group_child::run_task), name_(std::move(name))
    {
    }
    virtual ~group_child() = default;

    // Starts the operation. Called once, in the phase `starting`, while the caller holds a
    // reference.
    virtual void launch() noexcept = 0;
    // Emits the cancellation signal. Called on the strand.
    virtual void emit(asio::cancellation_type_t type) noexcept = 0;
    // Posts this task to the strand. Returns false if its executor has no memory for it.
    virtual bool post_to_strand() noexcept = 0;
    // The strand is not used any more. Called on the strand.
    virtual void give_back_strand() noexcept = 0;
    // Destroys an operation that was not started.
    virtual void discard() noexcept = 0;

private:
    friend class task_group_state<Threading>;
    static void run_task(intrusive_task& task, task_action action);

    // The lock of the state guards all members but name_.
    boost::intrusive_ptr<task_group_state<Threading>> state_; // while it runs or is posted
    std::string name_;
    std::uint64_t id_ = 0;
    std::uint64_t ticket_ = 0;           // its turn among the children and waiters for a place
    group_child* next_posted_ = nullptr; // the next one to be posted after the lock is released
    asio::cancellation_type_t cancellation_ = asio::cancellation_type::none; // not yet emitted
    phase_type phase_ = phase_type::queued;
    bool is_posted_ = false;
    bool was_cancelled_ = false; // by the group
    bool has_place_ = false;
};

template <class Threading>
using group_child_ptr = boost::intrusive_ptr<group_child<Threading>>;

// The exception of a child whose handler was destroyed: operation_aborted, or bad_alloc if there is
// no memory for that.
TURNSTILE_EXPORT std::exception_ptr aborted_child() noexcept;

enum class group_wait : unsigned char { join, place, next };

// A place that was taken for a child. The group may be cancelled before the child starts.
struct group_place {
    std::uint64_t cancellations_before = 0; // the number of calls of cancel() when it was taken
};

template <class Threading>
struct group_waiter : waiter {
    using waiter::waiter;
    group_wait kind = group_wait::join;
    std::uint64_t ticket = 0;                 // of a wait for a place
    group_place place;                        // of a granted wait for a place
    group_child<Threading>* result = nullptr; // of a granted wait for a result; owned
};

template <class Threading>
class TURNSTILE_EXPORT task_group_state final : public wait_state<Threading> {
public:
    using child = group_child<Threading>;
    using child_ptr = group_child_ptr<Threading>;
    using errors_type = std::list<std::exception_ptr>;

    template <class Executor>
    task_group_state(const Executor& executor, const task_group_options& options, bool has_results)
        : wait_state<Threading>(executor), limit_(checked(options).limit), policy_(options.policy),
          has_results_(has_results)
    {
    }
    ~task_group_state() override;

    // Takes a place. Refused with errc::closed or errc::rejected.
    wait_decision take_place(group_place& place) noexcept;
    // The same for a wait, which is pending if there is no place.
    wait_decision try_place(group_place& place) noexcept;
    // Gives back a place that was taken and not used.
    void give_place_back() noexcept;
    // Starts a child in a place that was taken before. A cancellation in between reaches the child.
    void start_child(const child_ptr& c, group_place place) noexcept;
    // Starts a child that needs no place, even in a closed group.
    void start_body(const child_ptr& c) noexcept;
    // Queues a child, or starts it if a place is free. Refused with errc::closed.
    wait_decision queue_child(const child_ptr& c) noexcept;

    // A child has ended: with `exception`, or successfully. `on_strand`: the call is on its strand.
    void end_child(child& c, std::exception_ptr exception, bool on_strand) noexcept;

    void close() noexcept;
    bool is_closed() noexcept;
    // Cancels the children that run, discards those that are queued, aborts waits for a place.
    void cancel(asio::cancellation_type_t type) noexcept;
    using wait_state<Threading>::cancel;
    // The group is being destroyed. Returns false if it has children that were not cancelled, and
    // its context has not stopped: another service may destroy the owner of the group before
    // shut_down() is called.
    bool abandon() noexcept;

    std::size_t limit() const noexcept { return limit_; }
    task_group_stats stats() noexcept;
    std::vector<task_group_child> children();
    std::vector<std::exception_ptr> errors();

    // Waits. try_join() closes the group first if `closes` is set.
    wait_decision try_join(bool closes) noexcept;
    // Reserves a result, or finds that none can come; see group_waiter::result.
    wait_decision try_next(child*& result) noexcept;
    void put_result_back(child* result) noexcept;
    // The reserved result was taken.
    void result_taken(child& c) noexcept;
    // The report of the group: null, or the exception of a child, or multiple_errors; and its code.
    std::pair<error_code, std::exception_ptr> report() noexcept;

private:
    using child_list = boost::intrusive::list<child>;
    using phase_type = typename child::phase_type;

    friend child;
    static const task_group_options& checked(const task_group_options& options)
    {
        if (options.limit == 0)
            throw_error(errc::invalid_argument, "task_group: limit must not be 0");
        return options;
    }

    // Children to be posted after the lock is released.
    struct post_chain {
        child* first = nullptr;
        child* last = nullptr;
    };

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void return_handle(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;
    void shut_down() noexcept override;

    // The functions below are called under the lock.
    bool has_free_place() const noexcept { return places_ < limit_; }
    // Whether no child runs, or can start.
    bool is_idle() const noexcept { return active_ == 0 && reserved_ == 0 && queued_.empty(); }
    bool is_drained() const noexcept { return is_idle() && results_.empty() && results_out_ == 0; }
    void begin(child& c, bool has_place) noexcept;
    void leave_place(child& c) noexcept;
    wait_decision take_place_locked(group_place& place) noexcept;
    void reserve_place(group_place& place) noexcept;
    wait_decision next_locked(child*& result) noexcept;
    void put_back_locked(child* result) noexcept;
    void join_locked(bool closes, ready_list& ready, post_chain& posts) noexcept;
    // Grants waiters and starts queued children as far as possible.
    void settle(ready_list& ready, post_chain& posts) noexcept;
    void settle_places(ready_list& ready, post_chain& posts) noexcept;
    void settle_in_update(ready_list& ready) noexcept;
    void close_locked(ready_list& ready) noexcept;
    void cancel_locked(asio::cancellation_type_t type, ready_list& ready, post_chain& posts,
                       child_list& discarded) noexcept;
    void request_cancellation(child& c, asio::cancellation_type_t type, post_chain& posts) noexcept;
    static void add(child& c, post_chain& posts) noexcept;

    // Without the lock.
    template <class F>
    auto change(F&& f) noexcept;
    void post_all(post_chain& posts) noexcept;
    static void release(child_list& list) noexcept;
    void run_start(const child_ptr& c) noexcept;
    void run_posted(child& c) noexcept;
    void drop_posted(child& c) noexcept;
    void post_failed(const child_ptr& c) noexcept;

    const std::size_t limit_;
    const join_policy policy_;
    const bool has_results_;
    // The lock guards all members below.
    bool closed_ = false;
    bool joining_ = false;      // results take no place
    bool cancelled_ = false;    // cancel() was called
    bool decided_ = false;      // fail_fast: a child has failed; first_success: one has succeeded
    bool is_shut_down_ = false; // the context is being destroyed
    std::size_t places_ = 0;
    std::size_t reserved_ = 0;    // places of granted waits that have not started their child
    std::size_t results_out_ = 0; // results that are granted and not taken
    std::size_t active_ = 0;      // the size of running_
    std::size_t queued_size_ = 0;
    std::uint64_t next_ticket_ = 0;
    std::uint64_t cancellations_ = 0; // by cancel() and by the policy
    // The types of those since the first of the reserved places was taken.
    asio::cancellation_type_t late_cancellation_ = asio::cancellation_type::none;
    task_group_stats totals_;
    child_list running_;
    child_list queued_;
    child_list results_;
    waiter_list placers_; // queue_ has the waiters of async_join
    waiter_list nexts_;
    errors_type errors_;
};

extern template class group_child<thread_safe>;
extern template class group_child<strand_confined>;
extern template class task_group_state<thread_safe>;
extern template class task_group_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
