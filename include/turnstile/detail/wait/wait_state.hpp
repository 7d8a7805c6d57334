// SPDX-License-Identifier: BSL-1.0
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

// The one mechanism: a FIFO of waiting operations, with queueing, granting, cancelling,
// closing and delivering. A primitive derives from it, adds its few words of state, and says
// who may go (the hooks below, all called under the lock).
//
// The block is shared: the object holds a reference, and so do a queued drain, an operation
// on its way to another executor, and an armed cancellation. So a completion in flight, or a
// signal emitted late, always finds it.
//
// Handles (locks, permits) hold no reference of their own, so that taking and returning one costs
// no more than a change of the state's word. A state that counts its handles there keeps the
// object's reference when the object is destroyed while some are out (keep_for_handles()); the
// last handle that is given back drops it (ready_list::drop_handles_reference()).
template <class Threading>
class TURNSTILE_EXPORT wait_state : public service_member {
public:
    using mutex_type = typename Threading::mutex_type;
    static constexpr bool is_confined = Threading::is_confined;

    template <class Executor>
    explicit wait_state(const Executor& executor)
        : service_member(asio::query(executor, asio::execution::context)), home_(executor),
          drain_(*this)
    {
    }
    ~wait_state() override = default;

    const posting_executor& home() const noexcept { return home_; }

    // Whether a call on this thread breaks the promise of strand_confined, where that can be told:
    // another thread is running completions of this object; or the context is running, this call
    // is from outside, and the last from inside was by another thread, which has not ended.
    bool called_from_wrong_strand() noexcept;

    // Takes over an operation: queues it if its decision is pending, else completes it. A state
    // whose arrivals have an effect of their own (latch, barrier, condition) overrides it.
    virtual void start(waiter& w) noexcept;

    // The signal of w's operation was emitted: w consumes nothing, even if it was granted.
    void cancel(cancel_link& link) noexcept;

    // Ends the link between a waiter and its cancellation handler, whichever goes first.
    void unlink(cancel_link& link) noexcept;
    void unlink(waiter& w) noexcept
    {
        guarded([&] { unlink_locked(w); });
    }

    // Called on w's executor as it completes; whether it gets what it waited for.
    TURNSTILE_HOT bool confirm_grant(waiter& w) noexcept
    {
        // Without a cancellation handler nobody else can change w's fate any more.
        if (w.is_cancellable)
            unlink(w);
        if (w.is_granted() && !alive_.load(std::memory_order_acquire)) [[unlikely]]
            abort_with_object(w);
        return w.is_granted();
    }

    // For a w that is not complete when it has been let go: on its way, whether it is still to
    // have what it was granted; and that it is not to have it, but to end with an error.
    bool is_due(waiter& w) noexcept
    {
        return guarded([&] { return w.is_granted() && alive_.load(std::memory_order_relaxed); });
    }
    void refuse(waiter& w, wait_decision why) noexcept;

    // w is destroyed without completing: what it was granted goes to the next.
    void drop(waiter& w) noexcept;

    // The object is being destroyed: every waiter completes with operation_aborted. Returns
    // whether the object's reference belongs to the handles that are out: then the state may be
    // gone when this returns.
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
    // Either decides w's fate and returns true, or links w into a queue: `queue_`, or one of
    // the primitive's own.
    virtual bool admit(waiter& w) noexcept = 0;
    // The same if `newcomers_serve_`: with w, others may go.
    virtual bool admit_among(waiter& w, ready_list&) noexcept { return admit(w); }
    // Takes w out of the queue it is in. Lists need not say so, since w unlinks itself.
    virtual void remove(waiter& w) noexcept { w.waiter_hook::unlink(); }
    // A waiter left its queue unserved: grants those who may go now.
    virtual void reconsider(ready_list& ready) noexcept = 0;
    // w was granted and will not use it: passes it on.
    virtual void take_back(waiter& w, ready_list& ready) noexcept = 0;
    // Whether w, which was granted before the object was destroyed, keeps its grant.
    virtual bool outlives_object(const waiter&) const noexcept { return false; }
    // w was granted, but the object was destroyed before w completed: a state that counts its
    // handles counts one less.
    virtual void return_handle(waiter&, ready_list&) noexcept {}
    // The object is being destroyed: whether handles are out, which keep its reference.
    virtual bool keep_for_handles() noexcept { return false; }
    // Moves every queued waiter to the list, from all queues.
    virtual void take_all(waiter_list& out) noexcept { out.splice(out.end(), queue_); }

    // Runs f(ready) under the lock, then delivers what it put there.
    template <class F>
    auto update(F&& f) noexcept
    {
        mutex_.lock();
        return update_locked(std::forward<F>(f));
    }

    // The two halves of an update that decides only one waiter: lock(), then either send(w), or
    // update_locked(f) if it turns out to be more. Both release the lock.
    void lock() noexcept { mutex_.lock(); }
    TURNSTILE_HOT void send(waiter& w) noexcept
    {
        if (w.foreign) [[unlikely]]
            return send_foreign(w);
        --waiting_;
        drain_.ready().push_back(w);
        send_home_with(true);
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

    // Runs f() under the lock; it lets nobody go.
    template <class F>
    auto guarded(F&& f) noexcept
    {
        std::scoped_lock lock(mutex_);
        return std::forward<F>(f)();
    }

    // Takes every waiter out of the list and lets `decide` settle its fate; called under the lock.
    template <class Decide>
    static void decide_each(waiter_list& list, ready_list& ready, Decide decide) noexcept
    {
        while (!list.empty()) {
            waiter& w = take_front(list);
            decide(w);
            ready.push_back(w);
        }
    }
    // The same for all that are queued.
    template <class Decide>
    void decide_all(ready_list& ready, Decide decide) noexcept
    {
        waiter_list all;
        take_all(all);
        decide_each(all, ready, decide);
    }

    // Under the lock: w was granted, has no use for it, and is to wait again; the caller
    // queues it. Returns false, and aborts it, if nobody would ever let it go.
    bool reopen(waiter& w) noexcept;

    // Without the lock: w's own executor has no memory for it.
    TURNSTILE_COLD void postpone(waiter& w) noexcept;

    // What retire() does under the lock.
    void retire_locked(ready_list& ready) noexcept;

    bool has_waiters() const noexcept { return waiting_ != 0; }
    std::size_t waiters() const noexcept { return waiting_; }

    // Drops all waiters, and what needs the context.
    void shut_down() noexcept override;
    void forget_context() noexcept override { home_ = posting_executor(); }

    waiter_list queue_;
    // Whether a newcomer may let others go: then it is admitted by admit_among().
    bool newcomers_serve_ = false;

private:
    void add_reference() noexcept final { references_.fetch_add(1, std::memory_order_relaxed); }
    bool drop_reference() noexcept final
    {
        return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    void unlink_locked(waiter& w) noexcept;
    TURNSTILE_COLD void abort_with_object(waiter& w) noexcept;
    friend class completion_drain<Threading>;

    TURNSTILE_NOINLINE void start_among_others(waiter& w) noexcept;
    TURNSTILE_COLD void track_home() noexcept;
    void keep_context_running() noexcept
    {
        if (!home_work_)
            track_home();
    }

    ready_list ready() noexcept { return ready_list(drain_.ready(), waiting_); }

    // Releases the lock, then lets the waiters go.
    void commit(ready_list& ready) noexcept
    {
        if (!ready.foreign().empty()) [[unlikely]]
            return send_foreign(ready);
        send_home();
        release_handles_reference(this, ready);
    }
    // Without the lock: drops the handles' reference if the last handle of a destroyed object was
    // returned. Static, because the state may be destroyed already if no such reference exists.
    static void release_handles_reference(wait_state* state, const ready_list& ready) noexcept
    {
        if (ready.drops_reference()) [[unlikely]]
            intrusive_ptr_release(state);
    }

    // The work on the context is given up when nobody is queued any more, but not before a
    // drain is posted that keeps the context running. Whoever has claimed that drain may not
    // have got so far: then it is the drain that gives it up.
    void send_home() noexcept { send_home_with(!drain_.ready().empty()); }
    TURNSTILE_HOT void send_home_with(bool somebody_is_ready) noexcept
    {
        if (holds_idle_work() && !drain_.is_queued()) [[unlikely]]
            return send_last();
        unlock_and_post(somebody_is_ready && drain_.schedule());
    }
    void unlock_and_post(bool scheduled) noexcept
    {
        mutex_.unlock();
        if (scheduled)
            drain_.post();
    }
    // Under the lock: if w was granted, that goes to the next, and w ends so instead.
    void revoke(waiter& w, wait_decision instead, ready_list& ready) noexcept;
    TURNSTILE_COLD void send_last() noexcept;
    TURNSTILE_COLD void send_foreign(waiter& w) noexcept;
    TURNSTILE_COLD void send_foreign(ready_list& ready) noexcept;
    bool holds_idle_work() const noexcept { return !has_waiters() && home_work_; }
    work_guard take_idle_work() noexcept
    {
        return holds_idle_work() ? home_work_.take() : work_guard();
    }

    posting_executor home_;
    // Held while anybody is queued, or ready and not to be posted, so that the context's run()
    // does not return.
    work_guard home_work_;
    completion_drain<Threading> drain_;
    policy_atomic<Threading, std::size_t> references_{0};
    policy_atomic<Threading, bool> alive_{true};
    bool shut_down_ = false;
    // For called_from_wrong_strand().
    std::atomic<std::thread::id> drained_by_{};
    std::atomic<std::thread::id> last_inside_{};
    std::atomic<std::size_t> ended_by_then_{0};
    // Those whose fate is open, in whatever queues.
    std::size_t waiting_ = 0;
    mutex_type mutex_; // last: next to what a primitive adds, which it guards
};

extern template class wait_state<thread_safe>;
extern template class wait_state<strand_confined>;

template <class Threading>
using wait_state_ptr = boost::intrusive_ptr<wait_state<Threading>>;

// A primitive's hold on its state: allocated with it, retired with it. Handles that are still out
// then keep the state.
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

    // The state, for a handle or an operation that will use it, not for a call of it.
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
