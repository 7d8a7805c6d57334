// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/completion_drain.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/assert.hpp>

#include <atomic>
#include <thread>

namespace turnstile::inline v0_1::detail {

// The executor had no memory for the drain. The waiters stay ready for the running drain or for the
// next wake-up, and outstanding work keeps the context running until then. If neither can come,
// because the object or its context was destroyed, the waiters are dropped.
template <class Threading>
void completion_drain<Threading>::post_failed(bool by_drain) noexcept
{
    const wait_state_ptr<Threading> reference(&owner_, false);
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        flags_ &= waiters_postponed;
        if (owner_.shut_down_ || (!by_drain && !owner_.alive_.load(std::memory_order_relaxed)))
            dropped.swap(ready_);
        if (ready_.empty())
            done = owner_.take_idle_work();
        else
            owner_.keep_context_running();
    }
    while (!dropped.empty())
        dropped.take_front().destroy();
}

template <class Threading>
void completion_drain<Threading>::post_postponed() noexcept
{
    ready_queue all = take_postponed();
    owner_.mutex_.unlock();
    while (!all.empty()) {
        waiter& w = all.take_front();
        if (!w.foreign->post())
            owner_.postpone(w);
    }
    owner_.mutex_.lock();
}

// Asserts, while a drain of a confined state runs, that no other thread runs one.
template <class Threading>
class completion_drain<Threading>::strand_check {
#ifdef NDEBUG
public:
    explicit strand_check(wait_state<Threading>&) noexcept {}
#else
public:
    explicit strand_check(wait_state<Threading>& state) noexcept : state_(state)
    {
        if constexpr (Threading::is_confined)
            before_ = state_.draining_thread_.exchange(self_, std::memory_order_relaxed);
        BOOST_ASSERT_MSG(before_ == std::thread::id() || before_ == self_,
                         "two threads run the strand of a strand_confined object");
    }
    strand_check(const strand_check&) = delete;
    strand_check& operator=(const strand_check&) = delete;
    ~strand_check()
    {
        if constexpr (Threading::is_confined)
            state_.draining_thread_.store(before_, std::memory_order_relaxed);
    }

private:
    wait_state<Threading>& state_;
    std::thread::id self_ = std::this_thread::get_id();
    std::thread::id before_; // set if this drain is nested in another
#endif
};

template <class Threading>
void completion_drain<Threading>::run(intrusive_task& self, task_action action)
{
    auto& d = static_cast<completion_drain&>(self);
    const queued_reference reference{d.owner_};
    if (action == task_action::destroy) [[unlikely]]
        return d.drop_ready();
    [[maybe_unused]] const strand_check check(d.owner_);

    d.owner_.mutex_.lock();
    if ((d.flags_ &= waiters_postponed) != 0) [[unlikely]]
        d.post_postponed();
    if (d.ready_.empty() || d.ready_.has_more() || d.owner_.holds_idle_work())
        return d.drain_locked();
    waiter& only = d.ready_.take_front();
    d.owner_.mutex_.unlock();
    only.invoke();
}

template <class Threading>
void completion_drain<Threading>::drain_locked()
{
    // Given up with the last waiter: until then a successor may have failed for want of memory.
    work_guard done;
    for (int n = 1; !ready_.empty(); ++n) {
        waiter& next = ready_.take_front();
        const bool more = !ready_.empty();
        if (!more)
            done = owner_.take_idle_work(); // this drain counts as work
        const bool scheduled = more && schedule();
        bool has_successor = is_queued();
        owner_.mutex_.unlock();
        if (scheduled)
            has_successor = post(true);
        try {
            next.invoke(); // if it throws, the successor delivers the others
        } catch (...) {
            if (more && !has_successor)
                post_successor();
            throw;
        }
        if (!more ||
            (has_successor && (n >= max_batch || (n % stop_check_interval == 0 &&
                                                  owner_.object_executor().has_stopped()))))
            return;
        owner_.mutex_.lock();
    }
    done = owner_.take_idle_work();
    owner_.mutex_.unlock();
}

template <class Threading>
void completion_drain<Threading>::post_successor() noexcept
{
    owner_.mutex_.lock();
    const bool scheduled = !ready_.empty() && schedule();
    owner_.mutex_.unlock();
    if (scheduled)
        post();
}

template <class Threading>
void completion_drain<Threading>::drop_ready()
{
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        flags_ &= waiters_postponed;
        done = owner_.take_idle_work();
        dropped.swap(ready_);
    }
    while (!dropped.empty())
        dropped.take_front().destroy();
}

template class completion_drain<thread_safe>;
template class completion_drain<strand_confined>;

} // namespace turnstile::inline v0_1::detail
