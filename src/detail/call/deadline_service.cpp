// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/call/deadline_service.hpp>

#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The waiting entries.
class deadline_tree {
public:
    bool is_empty() const noexcept { return entries_.empty(); }
    std::size_t size() const noexcept { return entries_.size(); }
    nanoseconds earliest() const noexcept { return entries_.begin()->when_; }

    // In constant time for the latest deadline, which it is if all limits are of the same length.
    void insert(deadline_entry& entry) noexcept
    {
        entry.phase_ = deadline_entry::phase::waiting;
        entries_.insert(entries_.end(), entry);
    }
    void erase(deadline_entry& entry) noexcept
    {
        entries_.erase(entries_.iterator_to(entry));
        entry.phase_ = deadline_entry::phase::idle;
    }

    // Removes the earliest entry, if its time has come, and adds it to a list of fired entries.
    bool fire_due(nanoseconds now, deadline_entry*& fired) noexcept
    {
        if (is_empty() || earliest() > now)
            return false;
        fire_earliest(fired);
        return true;
    }
    void fire_earliest(deadline_entry*& fired) noexcept
    {
        deadline_entry& entry = *entries_.begin();
        entries_.erase(entries_.begin());
        entry.phase_ = deadline_entry::phase::fired;
        entry.next_ = std::exchange(fired, &entry);
    }

private:
    struct earlier {
        bool operator()(const deadline_entry& a, const deadline_entry& b) const noexcept
        {
            return a.when_ < b.when_;
        }
    };

    boost::intrusive::multiset<deadline_entry, boost::intrusive::compare<earlier>,
                               boost::intrusive::constant_time_size<false>>
        entries_;
};

namespace {

// An entry that could not be posted is tried again after this time.
constexpr nanoseconds retry_after = std::chrono::milliseconds(1);

deadline_entry* reversed(deadline_entry* list, deadline_entry* deadline_entry::*next) noexcept
{
    deadline_entry* result = nullptr;
    while (list)
        list = std::exchange(list->*next, std::exchange(result, list));
    return result;
}

} // namespace

deadline_scheduler::deadline_scheduler(asio::execution_context& context)
    : asio::execution_context::service(context), tree_(std::make_unique<deadline_tree>()),
      look_(*this)
{
}

deadline_scheduler::~deadline_scheduler() = default;

bool deadline_scheduler::start(deadline_entry& entry, nanoseconds when)
{
    using phase = deadline_entry::phase;
    const std::lock_guard lock(mutex_);
    if (is_shut_down_)
        return false;
    const phase before = entry.phase_;
    if (before == phase::fired) {
        entry.effect_ = deadline_entry::effect::restart;
        entry.when_ = when;
        return false;
    }
    if (before == phase::waiting)
        tree_->erase(entry);
    entry.effect_ = deadline_entry::effect::expire;
    entry.when_ = when;
    tree_->insert(entry);
    if (!arm() && before == phase::idle) {
        tree_->erase(entry);
        throw std::bad_alloc();
    }
    return before == phase::idle;
}

deadline_scheduler::stopped deadline_scheduler::stop(deadline_entry& entry) noexcept
{
    const std::lock_guard lock(mutex_);
    entry.effect_ = deadline_entry::effect::stop;
    if (entry.phase_ != deadline_entry::phase::waiting)
        return {false, false};
    tree_->erase(entry);
    const bool needs_look =
        tree_->is_empty() && timer_phase_ == timer_phase::armed && !is_look_posted_;
    is_look_posted_ = is_look_posted_ || needs_look;
    return {true, needs_look};
}

void deadline_scheduler::look_again(const posting_executor& executor) noexcept
{
    if (!executor.post(look_))
        look_.invoke();
}

void deadline_scheduler::second_look::run(intrusive_task& task, task_action)
{
    deadline_scheduler& self = *static_cast<second_look&>(task).self_;
    const std::lock_guard lock(self.mutex_);
    self.is_look_posted_ = false;
    if (self.tree_->is_empty())
        self.disarm();
}

bool deadline_scheduler::recall(deadline_entry& entry) noexcept
{
    const std::lock_guard lock(mutex_);
    entry.effect_ = deadline_entry::effect::stop;
    if (entry.phase_ == deadline_entry::phase::waiting) {
        tree_->erase(entry);
        entry.when_ = nanoseconds::min();
        tree_->insert(entry);
        disarm(); // wait_ended() fires the entry
    }
    return entry.phase_ != deadline_entry::phase::idle;
}

deadline_scheduler::arrival deadline_scheduler::arrive(deadline_entry& entry) noexcept
{
    using effect = deadline_entry::effect;
    arrival result = arrival::stopped;
    deadline_entry* fired = nullptr;
    {
        const std::lock_guard lock(mutex_);
        entry.phase_ = deadline_entry::phase::idle;
        const effect now = std::exchange(entry.effect_, effect::expire);
        if (now == effect::restart && !is_shut_down_) {
            tree_->insert(entry);
            result = arrival::restarted;
        } else if (now == effect::expire) {
            result = arrival::expired;
        }
        if (!tree_->is_empty())
            arm_or_fire(fired);
    }
    fire(fired);
    return result;
}

std::size_t deadline_scheduler::size() noexcept
{
    const std::lock_guard lock(mutex_);
    return tree_->size();
}

// After the expiry it is at least the time of the deadline, even if the clock has gone back since.
void deadline_scheduler::wait_ended(bool has_expired) noexcept
{
    nanoseconds time = now();
    deadline_entry* fired = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (has_expired && timer_phase_ == timer_phase::armed)
            time = std::max(time, armed_for_);
        timer_phase_ = timer_phase::idle;
        while (tree_->fire_due(time, fired))
            continue;
        if (!tree_->is_empty())
            arm_or_fire(fired);
    }
    fire(fired);
}

// Sets the timer for the earliest entry, unless it expires before. An outstanding wait is cancelled
// for that, and started again when its handler has run.
bool deadline_scheduler::arm() noexcept
{
    const nanoseconds when = tree_->earliest();
    if (timer_phase_ == timer_phase::idle) {
        if (!arm_timer(when))
            return false;
        timer_phase_ = timer_phase::armed;
        armed_for_ = when;
    } else if (when < armed_for_) {
        disarm();
    }
    return true;
}

// Without memory for the timer, the earliest entry arrives early, and is started again.
void deadline_scheduler::arm_or_fire(deadline_entry*& fired) noexcept
{
    if (arm())
        return;
    tree_->fire_earliest(fired);
    if (fired->effect_ == deadline_entry::effect::expire)
        fired->effect_ = deadline_entry::effect::restart;
}

void deadline_scheduler::disarm() noexcept
{
    if (timer_phase_ != timer_phase::armed)
        return;
    timer_phase_ = timer_phase::returning;
    cancel_timer();
}

// The entries were added in front of the list. A posted entry may be gone at once.
void deadline_scheduler::fire(deadline_entry* list) noexcept
{
    list = reversed(list, &deadline_entry::next_);
    while (list) {
        deadline_entry& entry = *std::exchange(list, list->next_);
        if (entry.post())
            continue;
        const nanoseconds again = saturating_add(now(), retry_after);
        const std::lock_guard lock(mutex_);
        entry.when_ = again;
        tree_->insert(entry);
        static_cast<void>(arm()); // without memory for this either, the next call arms the timer
    }
}

void deadline_scheduler::shutdown()
{
    deadline_entry* dropped = nullptr;
    {
        const std::lock_guard lock(mutex_);
        is_shut_down_ = true;
        while (!tree_->is_empty())
            tree_->fire_earliest(dropped);
        timer_phase_ = timer_phase::idle;
        destroy_timer();
    }
    while (dropped) {
        deadline_entry& entry = *std::exchange(dropped, dropped->next_);
        entry.destroy();
    }
}

template class deadline_service<default_clock>;

} // namespace turnstile::inline v0_1::detail
