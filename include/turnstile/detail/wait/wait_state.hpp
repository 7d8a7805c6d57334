// SPDX-License-Identifier: BSL-1.0
// The mechanism that every primitive shares: a FIFO queue of waiters, with queueing, granting,
// cancelling, closing and delivering. A primitive's state derives from wait_state, adds its own
// words, and decides which waiters are granted by overriding the hooks below. All hooks except
// start() are called under the lock.
//
// The state is reference counted and may outlive its object. The object holds a reference, and so
// do a queued drain, an operation that is posted to a foreign executor, and an armed cancellation.
// So a posted completion, and a signal that is emitted late, find the state.
//
// Handles (locks, permits) hold no reference, so that acquiring and releasing change only the word
// of the state, which counts the handles. If handles are held when the object is destroyed, its
// reference is left to them (keep_for_handles()), and the last handle that is released drops it
// (ready_list::drop_handles_reference()).
//
// Invariants: no handler is invoked, posted or destroyed under the lock. Each waiter is completed
// or dropped, once. While waiters are queued, the object's context has outstanding work, unless its
// executor had no memory for it.
//
// Endings, each word with one meaning:
//   complete        The operation ends, and its handler is called (wait_operation).
//   cancel          The caller requests an early end through the cancellation slot. A pending
//                   waiter is aborted; the grant of a granted waiter is revoked.
//   abort           The waiter is decided with operation_aborted, because it was cancelled or its
//                   object was destroyed.
//   refuse          The waiter is decided with an errc of the object (waiter::fail()).
//   revoke          A granted waiter loses its grant before its handler runs, and is aborted or
//                   refused instead. The state takes the grant back (take_back()) and passes it on.
//   drop            The operation ends without completing: its handler is not called, and its grant
//                   is taken back.
//   destroy         An operation is dropped and its memory is freed (waiter::destroy()).
//   retire          The object is destroyed. Its waiters are aborted; the state lives on until the
//                   last reference is dropped.
//   return_handle   A granted waiter of a retired object ends without its grant: the state counts
//                   one handle less, and grants nothing.
//   shut down       The execution context is destroyed. All waiters are dropped.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/post/completion_drain.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/wait/service_member.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class TURNSTILE_EXPORT wait_state : public service_member {
public:
    using mutex_type = typename Threading::mutex_type;
    static constexpr bool is_confined = Threading::is_confined;

    template <class Executor>
    explicit wait_state(const Executor& executor)
        : service_member(asio::query(executor, asio::execution::context)),
          object_executor_(executor), drain_(*this)
    {
    }
    ~wait_state() override = default;

    const posting_executor& object_executor() const noexcept { return object_executor_; }

    // Whether a call on this thread certainly breaks the rule of strand_confined: another thread is
    // running completions of this object; or the context is running, this call comes from outside
    // it, and the last call from inside came from another thread, which has not ended.
    bool called_from_wrong_strand() noexcept;

    // Takes over an operation: admits it if its decision is pending, and posts its completion if it
    // is decided. A state whose arrivals have an effect of their own (latch, barrier, condition)
    // overrides it.
    virtual void start(waiter& w) noexcept;

    // The cancellation signal of an operation was emitted. Its waiter consumes nothing, even if it
    // was granted, unless it has completed.
    void cancel(cancel_link& link) noexcept;

    // Ends the link between a waiter and its cancellation handler. The one that is destroyed first
    // calls it.
    void unlink(cancel_link& link) noexcept;
    void unlink(waiter& w) noexcept
    {
        guarded([&] { unlink_locked(w); });
    }

    // Called on w's executor when w completes. Returns whether w keeps its grant.
    TURNSTILE_HOT bool confirm_grant(waiter& w) noexcept
    {
        // Without a cancellation handler no other thread can change the decision.
        if (w.is_cancellable)
            unlink(w);
        if (w.is_granted() && !alive_.load(std::memory_order_acquire)) [[unlikely]]
            abort_with_object(w);
        return w.is_granted();
    }

    // For a w that has more to do after its grant, as the waiter of a condition, which then
    // acquires its lock: whether w still has its grant.
    bool is_due(waiter& w) noexcept
    {
        return guarded([&] { return w.is_granted() && alive_.load(std::memory_order_relaxed); });
    }
    // Revokes the grant of w, if it has one; w ends with `instead`.
    void revoke(waiter& w, wait_decision instead) noexcept;

    // w is destroyed without completing: its grant is passed on.
    void drop(waiter& w) noexcept;

    // The object is being destroyed: aborts every waiter. Returns whether the object's reference
    // is left to the handles that are still held; in this case the state may be destroyed already.
    bool retire() noexcept;
    bool is_alive() const noexcept { return alive_.load(std::memory_order_acquire); }

    // The number of waiters. A state whose waiters queue elsewhere hides it with its own.
    std::size_t waiting() noexcept
    {
        return guarded([&] { return waiting_; });
    }

    friend void intrusive_ptr_add_ref(wait_state* s) noexcept { s->wait_state::add_reference(); }
    TURNSTILE_HOT friend void intrusive_ptr_release(wait_state* s) noexcept
    {
        const auto drop_one_of_several = [](std::size_t& n) noexcept { return n-- > 1; };
        if (!s->references_.update(drop_one_of_several, std::memory_order_acq_rel))
            s->drop_last_reference();
    }

protected:
    // A waiter arrives: decides it and returns true, or links it into a queue, which is `queue_` or
    // one of the derived state, and returns false.
    virtual bool admit(waiter& w) noexcept = 0;
    // The same for a state in which an arrival can cause the grant of other waiters. Called instead
    // of admit() if `arrivals_grant_others_` is set.
    virtual bool admit_and_grant(waiter& w, ready_list&) noexcept { return admit(w); }
    // Removes w from its queue. Only a state whose queue is not a waiter_list overrides it.
    virtual void remove(waiter& w) noexcept { w.waiter_hook::unlink(); }
    // A waiter has left its queue without a grant: grants the waiters that only it has blocked.
    virtual void reconsider(ready_list& ready) noexcept = 0;
    // w was granted and will not use its grant: passes the grant on.
    virtual void take_back(waiter& w, ready_list& ready) noexcept = 0;
    // The object was destroyed after w was granted: whether w keeps its grant.
    virtual bool outlives_object(const waiter&) const noexcept { return false; }
    // The object was destroyed before w, which was granted, completed: a state that counts its
    // handles counts one less.
    virtual void return_handle(waiter&, ready_list&) noexcept {}
    // The object is being destroyed: whether handles are still held, which take over its reference.
    virtual bool keep_for_handles() noexcept { return false; }
    // Moves the waiters of all queues to `out`.
    virtual void take_all(waiter_list& out) noexcept { out.splice(out.end(), queue_); }

    // Runs f(ready) under the lock, releases the lock, and posts the waiters in `ready`.
    template <class F>
    auto update(F&& f) noexcept
    {
        mutex_.lock();
        return update_locked(std::forward<F>(f));
    }

    // An update in two halves, which is faster if it decides only one waiter: lock(), and then
    // either commit(w), or update_locked(f) for any number of waiters. Both release the lock.
    void lock() noexcept { mutex_.lock(); }
    TURNSTILE_HOT void commit(waiter& w) noexcept
    {
        if (w.foreign) [[unlikely]]
            return post_foreign(w);
        --waiting_;
        drain_.ready().push_back(w);
        unlock_and_schedule(true);
    }
    template <class F>
    auto update_locked(F&& f) noexcept
    {
        struct transaction {
            explicit transaction(wait_state& s) noexcept : state(s), ready(s.ready()) {}
            transaction(const transaction&) = delete;
            ~transaction() { state.commit(ready); }

            wait_state& state;
            ready_list ready;
        } t(*this);
        return std::forward<F>(f)(t.ready);
    }

    // Runs f() under the lock; f decides no waiter.
    template <class F>
    auto guarded(F&& f) noexcept
    {
        std::scoped_lock lock(mutex_);
        return std::forward<F>(f)();
    }

    // Under the lock: calls decide(w) for each waiter of the list, and moves it to `ready`.
    template <class Decide>
    static void decide_each(waiter_list& list, ready_list& ready, Decide decide) noexcept
    {
        while (!list.empty()) {
            waiter& w = take_front(list);
            decide(w);
            ready.push_back(w);
        }
    }
    // The same for all queued waiters.
    template <class Decide>
    void decide_all(ready_list& ready, Decide decide) noexcept
    {
        waiter_list all;
        take_all(all);
        decide_each(all, ready, decide);
    }

    // Under the lock: w was granted, does not use its grant, and waits again; the caller queues it.
    // Aborts w and returns false if the object or its context was destroyed.
    bool reopen(waiter& w) noexcept;

    // Without the lock: the foreign executor of w has no memory for it. w is posted again with the
    // next wake-up.
    TURNSTILE_COLD void postpone(waiter& w) noexcept;

    // The part of retire() under the lock.
    void retire_locked(ready_list& ready) noexcept;

    bool has_waiters() const noexcept { return waiting_ != 0; }
    std::size_t waiters() const noexcept { return waiting_; }

    // Destroys all waiters, and gives up everything that needs the context.
    void shut_down() noexcept override;
    void forget_context() noexcept override { object_executor_ = posting_executor(); }

    waiter_list queue_;
    // Whether waiters are admitted by admit_and_grant(); constant after construction.
    bool arrivals_grant_others_ = false;

private:
    void add_reference() noexcept final { references_.fetch_add(1, std::memory_order_relaxed); }
    bool drop_reference() noexcept final
    {
        return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    void unlink_locked(waiter& w) noexcept;
    TURNSTILE_COLD void abort_with_object(waiter& w) noexcept;
    friend class completion_drain<Threading>;

    TURNSTILE_NOINLINE void start_and_grant(waiter& w) noexcept;
    TURNSTILE_COLD void track_context_work() noexcept;
    void keep_context_running() noexcept
    {
        if (!context_work_)
            track_context_work();
    }

    ready_list ready() noexcept { return ready_list(drain_.ready(), waiting_); }

    // Releases the lock, then posts the waiters.
    void commit(ready_list& ready) noexcept
    {
        if (!ready.foreign().empty()) [[unlikely]]
            return post_foreign(ready);
        unlock_and_schedule();
        release_handles_reference(this, ready);
    }
    // Without the lock: drops the reference that the handles share if the last one was released.
    // Static, because without such a reference the state may be destroyed already.
    static void release_handles_reference(wait_state* state, const ready_list& ready) noexcept
    {
        if (ready.drops_reference()) [[unlikely]]
            intrusive_ptr_release(state);
    }

    // Releases the lock, and posts a drain if waiters are ready. When no waiter is queued, the work
    // on the context is given up as well, but not before the drain is posted, which keeps the
    // context running. If another thread has scheduled the drain, and may not have posted it, the
    // drain gives the work up.
    void unlock_and_schedule() noexcept { unlock_and_schedule(!drain_.ready().empty()); }
    TURNSTILE_HOT void unlock_and_schedule(bool waiters_are_ready) noexcept
    {
        if (holds_idle_work() && !drain_.is_queued()) [[unlikely]]
            return schedule_and_end_work();
        unlock_and_post(waiters_are_ready && drain_.schedule());
    }
    void unlock_and_post(bool scheduled) noexcept
    {
        mutex_.unlock();
        if (scheduled)
            drain_.post();
    }
    // The same under the lock.
    void revoke(waiter& w, wait_decision instead, ready_list& ready) noexcept;
    // The cold part of unlock_and_schedule().
    TURNSTILE_COLD void schedule_and_end_work() noexcept;
    // The parts of commit() for waiters on foreign executors.
    TURNSTILE_COLD void post_foreign(waiter& w) noexcept;
    TURNSTILE_COLD void post_foreign(ready_list& ready) noexcept;
    // Whether the state holds work on the context without a queued waiter.
    bool holds_idle_work() const noexcept { return !has_waiters() && context_work_; }
    work_guard take_idle_work() noexcept
    {
        return holds_idle_work() ? context_work_.take() : work_guard();
    }

    posting_executor object_executor_;
    // Held while waiters are queued, or are ready and could not be posted, so that the context's
    // run() does not return.
    work_guard context_work_;
    completion_drain<Threading> drain_;
    policy_atomic<Threading, std::size_t> references_{0};
    policy_atomic<Threading, bool> alive_{true};
    bool shut_down_ = false;
    // For called_from_wrong_strand(): the thread that runs a drain; the thread of the last call
    // from inside the context; and the number of threads that had ended at that call.
    std::atomic<std::thread::id> draining_thread_{};
    std::atomic<std::thread::id> last_thread_inside_{};
    std::atomic<std::size_t> ended_threads_then_{0};
    // The number of undecided waiters, in all queues.
    std::size_t waiting_ = 0;
    mutex_type mutex_; // the last member: next to the members of the derived state, which it guards
};

extern template class wait_state<thread_safe>;
extern template class wait_state<strand_confined>;

template <class Threading>
using wait_state_ptr = boost::intrusive_ptr<wait_state<Threading>>;

// The object's reference to its state. The constructor allocates the state, the destructor retires
// it, and leaves it to the handles that are still held.
template <class State>
class owned_state {
public:
    template <class... Args>
    explicit owned_state(Args&&... args) : state_(new State(std::forward<Args>(args)...))
    {
    }
    owned_state(const owned_state&) = delete;
    owned_state& operator=(const owned_state&) = delete;
    ~owned_state()
    {
        if (state_->retire())
            state_.detach();
    }

    // The state without a check of the strand, for a handle or an operation that stores the
    // pointer.
    State* get() const noexcept { return state_.get(); }
    State& operator*() const noexcept { return *checked(); }
    State* operator->() const noexcept { return checked(); }

private:
    State* checked() const noexcept
    {
        BOOST_ASSERT_MSG(!State::is_confined || !state_->called_from_wrong_strand(),
                         "a strand_confined object was called from outside its strand");
        return state_.get();
    }

    boost::intrusive_ptr<State> state_;
};

} // namespace turnstile::inline v0_1::detail
