// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/flight_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
void flight<Threading>::run_task(intrusive_task& task, task_action action)
{
    auto& self = static_cast<flight&>(task);
    const flight_ptr<Threading> keep_flight(&self, false);
    const auto keep_state = self.state_;
    if (action == task_action::invoke)
        keep_state->run_posted(self);
    else // the execution context is being destroyed
        keep_state->drop_posted(self);
}

template <class Threading>
auto flight_state<Threading>::find(std::size_t hash, std::uint64_t seen, flight_type* made,
                                   typename table::storage& storage,
                                   std::size_t& storage_needed) noexcept -> flight_pointer
{
    return this->guarded([&]() -> flight_pointer {
        storage_needed = 0;
        flight_type* f = table_.next(hash, seen);
        if (!f && made) {
            const std::size_t needed = table_.storage_needed();
            if (needed > storage.size) {
                storage_needed = needed;
                return nullptr;
            }
            if (needed != 0)
                table_.grow(storage);
            f = made;
            table_.insert(*f);
            f->is_current_ = true;
            flights_.push_back(*f);
            intrusive_ptr_add_ref(f);
            active_.fetch_add(1, std::memory_order_release);
        }
        if (f)
            ++f->pins_;
        return f;
    });
}

template <class Threading>
void flight_state<Threading>::remove_from_table(flight_type& f) noexcept
{
    if (std::exchange(f.is_current_, false))
        table_.erase(f);
}

// Takes the flight out of all lists. Returns the reference that they had.
template <class Threading>
auto flight_state<Threading>::forget(flight_type& f) noexcept -> flight_pointer
{
    f.phase_ = phase_type::ended;
    remove_from_table(f);
    flights_.erase(flights_.iterator_to(f));
    active_.fetch_sub(1, std::memory_order_release);
    return flight_pointer(&f, false);
}

template <class Threading>
void flight_state<Threading>::begin(flight_type& f) noexcept
{
    f.phase_ = phase_type::starting;
    f.state_ = this;
    ++totals_.started;
    ++totals_.loading;
}

template <class Threading>
bool flight_state<Threading>::mark_posted(flight_type& f) noexcept
{
    f.is_posted_ = true;
    intrusive_ptr_add_ref(&f);
    return true;
}

template <class Threading>
bool flight_state<Threading>::request_cancellation(flight_type& f) noexcept
{
    remove_from_table(f);
    f.is_cancelled_ = true;
    return f.phase_ == phase_type::running && !f.is_posted_ && mark_posted(f);
}

template <class Threading>
void flight_state<Threading>::unpin(flight_type& f) noexcept
{
    flight_pointer forgotten;
    const bool posts = this->guarded([&] {
        if (--f.pins_ != 0 || f.is_refresh_ || f.phase_ == phase_type::ended)
            return false;
        if (f.phase_ != phase_type::unstarted)
            return request_cancellation(f);
        forgotten = forget(f);
        return false;
    });
    if (posts)
        post(f);
    if (forgotten)
        f.discard(false);
}

template <class Threading>
void flight_state<Threading>::count_joined() noexcept
{
    this->guarded([&] { ++totals_.joined; });
}

template <class Threading>
void flight_state<Threading>::supersede(flight_type& f) noexcept
{
    this->guarded([&] { remove_from_table(f); });
}

template <class Threading>
void flight_state<Threading>::supersede_all() noexcept
{
    this->guarded([&] {
        for (flight_type& f : flights_)
            remove_from_table(f);
    });
}

template <class Threading>
void flight_state<Threading>::start(waiter& w) noexcept
{
    // The flights to start, each with a reference. The waiter may have ended when they are started.
    flight_type* first = nullptr;
    if (w.is_pending()) {
        this->guarded([&] {
            if (!this->is_alive())
                return;
            for (const flight_pointer& f : static_cast<flight_waiter<Threading>&>(w).flights) {
                if (f->phase_ != phase_type::unstarted)
                    continue;
                begin(*f);
                intrusive_ptr_add_ref(f.get());
                f->next_to_start_ = std::exchange(first, f.get());
            }
        });
    }
    // The load may destroy the object.
    const boost::intrusive_ptr<flight_state> keep_alive(first ? this : nullptr);
    wait_state<Threading>::start(w);
    while (first) {
        const flight_pointer f(first, false);
        first = f->next_to_start_;
        run_start(*f);
    }
}

template <class Threading>
void flight_state<Threading>::start_refresh(flight_type& f) noexcept
{
    const bool posts = this->guarded([&] {
        if (f.phase_ != phase_type::unstarted || !this->is_alive())
            return false;
        f.is_refresh_ = true;
        begin(f);
        return mark_posted(f);
    });
    if (posts)
        post(f);
}

// Without the lock, in the phase `starting`, with a reference to the flight and to the state.
template <class Threading>
void flight_state<Threading>::run_start(flight_type& f) noexcept
{
    f.launch();
    const bool posts = this->guarded([&] {
        if (f.phase_ != phase_type::starting)
            return false; // it has ended
        f.phase_ = phase_type::running;
        return f.is_cancelled_ && mark_posted(f);
    });
    if (posts)
        post(f);
}

template <class Threading>
void flight_state<Threading>::post(flight_type& f) noexcept
{
    if (f.post_to_strand()) [[likely]]
        return;
    // The executor has no memory. A load that should be cancelled continues; one that should start
    // ends.
    const flight_pointer keep_flight(&f, false);
    boost::intrusive_ptr<flight_state> dropped;
    const bool should_start = this->guarded([&] {
        f.is_posted_ = false;
        if (f.phase_ == phase_type::ended)
            dropped.swap(f.state_);
        return f.phase_ == phase_type::starting;
    });
    if (!should_start)
        return;
    f.discard(false);
    end_flight(f, false, false);
}

// On the strand of the load.
template <class Threading>
void flight_state<Threading>::run_posted(flight_type& f) noexcept
{
    boost::intrusive_ptr<flight_state> dropped;
    bool is_cancelled = false;
    const phase_type phase = this->guarded([&] {
        f.is_posted_ = false;
        is_cancelled = f.is_cancelled_;
        if (f.phase_ == phase_type::ended)
            dropped.swap(f.state_);
        return f.phase_;
    });
    if (phase == phase_type::starting && is_cancelled) {
        f.discard(true);
        end_flight(f, false, true);
    } else if (phase == phase_type::starting)
        run_start(f);
    else if (phase == phase_type::running)
        f.emit();
    else if (dropped)
        f.give_back_strand(); // it has ended after the cancellation was posted
}

template <class Threading>
void flight_state<Threading>::drop_posted(flight_type& f) noexcept
{
    boost::intrusive_ptr<flight_state> dropped;
    const bool should_end = this->guarded([&] {
        f.is_posted_ = false;
        if (f.phase_ == phase_type::ended)
            dropped.swap(f.state_);
        return f.phase_ == phase_type::starting;
    });
    if (!should_end)
        return; // a load that runs is dropped with its handler
    f.discard(true);
    end_flight(f, false, false);
}

template <class Threading>
void flight_state<Threading>::end_flight(flight_type& f, bool succeeded, bool on_strand) noexcept
{
    boost::intrusive_ptr<flight_state> reference;
    bool gives_strand_back = false;
    flight_pointer forgotten;
    succeeded = loaded(f, succeeded);
    this->update([&](ready_list& ready) {
        // The operation of several flights ends also those that no caller has started.
        if (f.phase_ == phase_type::ended)
            return;
        if (f.phase_ == phase_type::unstarted) {
            ++totals_.started;
            ++totals_.loading;
        }
        settle(f, succeeded, f.is_current_ && this->is_alive());
        forgotten = forget(f);
        // A flight that is posted drops its reference when that task runs.
        if (!f.is_posted_) {
            reference.swap(f.state_);
            gives_strand_back = on_strand;
        } else {
            reference = f.state_;
        }
        --totals_.loading;
        ++(succeeded ? totals_.succeeded : f.is_cancelled_ ? totals_.cancelled : totals_.failed);
        while (!f.waiters_.empty()) {
            auto& w = static_cast<flight_waiter<Threading>&>(take_front(f.waiters_));
            if (!advance(w))
                continue;
            w.grant();
            ready.push_back(w);
        }
    });
    if (gives_strand_back)
        f.give_back_strand();
    settled(f);
}

template <class Threading>
bool flight_state<Threading>::advance(flight_waiter<Threading>& w) noexcept
{
    for (; w.ended != w.flights.size(); ++w.ended) {
        flight_type& f = *w.flights[w.ended];
        if (f.phase_ != phase_type::ended) {
            f.waiters_.push_back(w);
            return false;
        }
    }
    return true;
}

template <class Threading>
bool flight_state<Threading>::admit(waiter& w) noexcept
{
    if (!advance(static_cast<flight_waiter<Threading>&>(w)))
        return false;
    w.grant();
    return true;
}

template <class Threading>
void flight_state<Threading>::take_all(waiter_list& out) noexcept
{
    for (flight_type& f : flights_)
        out.splice(out.end(), f.waiters_);
}

template <class Threading>
void flight_state<Threading>::cancel_all() noexcept
{
    // The flights to post, linked by next_to_start_, which a flight that runs does not use.
    flight_type* first = nullptr;
    this->guarded([&] {
        for (flight_type& f : flights_) {
            if (f.phase_ != phase_type::unstarted && request_cancellation(f))
                f.next_to_start_ = std::exchange(first, &f);
        }
    });
    while (first) {
        flight_type& f = *first; // may end inside post()
        first = f.next_to_start_;
        post(f);
    }
}

template <class Threading>
single_flight_stats flight_state<Threading>::stats() noexcept
{
    return this->guarded([&] {
        single_flight_stats s = totals_;
        s.waiting = this->waiters();
        return s;
    });
}

template class flight<thread_safe>;
template class flight<strand_confined>;
template class flight_state<thread_safe>;
template class flight_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
