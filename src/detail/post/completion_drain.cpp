// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/completion_drain.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <boost/assert.hpp>

#include <atomic>
#include <thread>

namespace turnstile::inline v0_1::detail {

// There was no memory: they stay ready, and go with the drain that is running, or the next wake-up,
// for which the context is kept running. If there can be neither, they go now.
template <class Threading>
void completion_drain<Threading>::not_posted(bool by_drain) noexcept
{
    const wait_state_ptr<Threading> reference(&owner_, false);
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        pending_ &= others;
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

// For the time of a drain of a confined state: nobody but its thread may call.
template <class Threading>
class completion_drain<Threading>::occupation {
#ifdef NDEBUG
public:
    explicit occupation(wait_state<Threading>&) noexcept {}
#else
public:
    explicit occupation(wait_state<Threading>& state) noexcept : state_(state)
    {
        if constexpr (Threading::is_confined)
            before_ = state_.drained_by_.exchange(self_, std::memory_order_relaxed);
        BOOST_ASSERT_MSG(before_ == std::thread::id() || before_ == self_,
                         "two threads run the strand of a strand_confined object");
    }
    occupation(const occupation&) = delete;
    occupation& operator=(const occupation&) = delete;
    ~occupation()
    {
        if constexpr (Threading::is_confined)
            state_.drained_by_.store(before_, std::memory_order_relaxed);
    }

private:
    wait_state<Threading>& state_;
    std::thread::id self_ = std::this_thread::get_id();
    std::thread::id before_; // of a drain that runs a nested one
#endif
};

template <class Threading>
void completion_drain<Threading>::run(intrusive_task& self, task_action action)
{
    auto& d = static_cast<completion_drain&>(self);
    const queued_reference reference{d.owner_};
    if (action == task_action::destroy) [[unlikely]]
        return d.discard();
    [[maybe_unused]] const occupation inside(d.owner_);

    d.owner_.mutex_.lock();
    if ((d.pending_ &= others) != 0) [[unlikely]]
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
    work_guard done; // given up with the last: until then there may be no memory for a successor
    for (int n = 1; !ready_.empty(); ++n) {
        waiter& next = ready_.take_front();
        const bool more = !ready_.empty();
        if (!more)
            done = owner_.take_idle_work(); // this drain is work by itself
        const bool scheduled = more && schedule();
        bool handed_on = is_queued();
        owner_.mutex_.unlock();
        if (scheduled)
            handed_on = post(true);
        try {
            next.invoke(); // if it throws, the others are the successor's
        } catch (...) {
            if (more && !handed_on)
                hand_on();
            throw;
        }
        if (!more || (handed_on && (n >= batch || (n % look == 0 && owner_.object_executor().has_stopped()))))
            return;
        owner_.mutex_.lock();
    }
    done = owner_.take_idle_work();
    owner_.mutex_.unlock();
}

template <class Threading>
void completion_drain<Threading>::hand_on() noexcept
{
    owner_.mutex_.lock();
    const bool scheduled = !ready_.empty() && schedule();
    owner_.mutex_.unlock();
    if (scheduled)
        post();
}

template <class Threading>
void completion_drain<Threading>::discard()
{
    work_guard done;
    ready_queue dropped;
    {
        std::scoped_lock lock(owner_.mutex_);
        pending_ &= others;
        done = owner_.take_idle_work();
        dropped.swap(ready_);
    }
    while (!dropped.empty())
        dropped.take_front().destroy();
}

template class completion_drain<thread_safe>;
template class completion_drain<strand_confined>;

} // namespace turnstile::inline v0_1::detail
