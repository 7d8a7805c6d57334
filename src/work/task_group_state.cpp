// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/operation.hpp>
#include <turnstile/work/detail/task_group_state.hpp>
#include <turnstile/work/multiple_errors.hpp>

#include <boost/asio/error.hpp>

#include <new>

namespace turnstile::inline v0_1::detail {

std::exception_ptr aborted_child() noexcept
{
    try {
        return std::make_exception_ptr(system_error(asio::error::operation_aborted));
    } catch (...) { // the message of a system_error is in memory
        return std::current_exception();
    }
}

template <class Threading>
void group_child<Threading>::run_task(intrusive_task& task, task_action action)
{
    auto& self = static_cast<group_child&>(task);
    const group_child_ptr<Threading> keep_child(&self, false);
    const auto keep_state = self.state_; // of the same type; the child may drop its own
    if (action == task_action::invoke)
        return keep_state->run_posted(self);
    // The execution context is being destroyed. A child that runs is dropped with its handler.
    keep_state->drop_posted(self);
}

template <class Threading>
task_group_state<Threading>::~task_group_state()
{
    release(queued_);
    release(results_);
}

// Runs f(ready, posts, released) under the lock. Then posts the children, and releases others.
template <class Threading>
template <class F>
auto task_group_state<Threading>::change(F&& f) noexcept
{
    struct after_unlock {
        ~after_unlock()
        {
            state.post_all(posts);
            release(released);
        }
        task_group_state& state;
        post_chain posts{};
        child_list released{};
    } after{*this};
    return this->update([&](ready_list& ready) { return f(ready, after.posts, after.released); });
}

template <class Threading>
void task_group_state<Threading>::release(child_list& list) noexcept
{
    while (!list.empty()) {
        const child_ptr c(&list.front(), false);
        list.pop_front();
        c->discard();
    }
}

template <class Threading>
void task_group_state<Threading>::add(child& c, post_chain& posts) noexcept
{
    intrusive_ptr_add_ref(&c);
    c.is_posted_ = true;
    c.next_posted_ = nullptr;
    (posts.last ? posts.last->next_posted_ : posts.first) = &c;
    posts.last = &c;
}

template <class Threading>
void task_group_state<Threading>::post_all(post_chain& posts) noexcept
{
    for (child* c = posts.first; c;) {
        child& posted = *std::exchange(c, c->next_posted_); // may run before post returns
        if (!posted.post_to_strand()) [[unlikely]]
            post_failed(child_ptr(&posted, false));
    }
}

// The executor has no memory to post the child. A cancellation is stored for the next cancel(). A
// child that should start ends instead.
template <class Threading>
void task_group_state<Threading>::post_failed(const child_ptr& c) noexcept
{
    bool should_start = false;
    boost::intrusive_ptr<task_group_state> dropped;
    this->update([&](ready_list&) {
        c->is_posted_ = false;
        should_start = c->phase_ == phase_type::starting;
        if (c->phase_ == phase_type::ended)
            dropped.swap(c->state_);
    });
    if (!should_start)
        return;
    c->discard();
    end_child(*c, std::make_exception_ptr(std::bad_alloc()), false);
}

// On the strand of the child.
template <class Threading>
void task_group_state<Threading>::run_posted(child& c) noexcept
{
    bool should_start = false;
    auto type = asio::cancellation_type::none;
    boost::intrusive_ptr<task_group_state> dropped;
    this->update([&](ready_list&) {
        c.is_posted_ = false;
        should_start = c.phase_ == phase_type::starting;
        if (c.phase_ == phase_type::running)
            type = std::exchange(c.cancellation_, asio::cancellation_type::none);
        else if (c.phase_ == phase_type::ended)
            dropped.swap(c.state_);
    });
    if (should_start)
        run_start(child_ptr(&c));
    else if (type != asio::cancellation_type::none)
        c.emit(type);
    else if (dropped)
        c.give_back_strand(); // it has ended after the cancellation was posted
}

template <class Threading>
void task_group_state<Threading>::drop_posted(child& c) noexcept
{
    bool should_end = false;
    boost::intrusive_ptr<task_group_state> dropped;
    this->update([&](ready_list&) {
        c.is_posted_ = false;
        should_end = c.phase_ == phase_type::starting;
        if (c.phase_ == phase_type::ended)
            dropped.swap(c.state_);
    });
    if (!should_end)
        return;
    c.discard();
    end_child(c, aborted_child(), false);
}

// Without the lock: the child is in the phase `starting`.
template <class Threading>
void task_group_state<Threading>::run_start(const child_ptr& c) noexcept
{
    c->launch();
    change([&](ready_list&, post_chain& posts, child_list&) {
        if (c->phase_ != phase_type::starting)
            return; // it has ended
        c->phase_ = phase_type::running;
        if (c->cancellation_ != asio::cancellation_type::none)
            add(*c, posts);
    });
}

template <class Threading>
void task_group_state<Threading>::begin(child& c, bool has_place) noexcept
{
    c.phase_ = phase_type::starting;
    c.has_place_ = has_place;
    c.id_ = ++totals_.spawned;
    c.state_ = this;
    running_.push_back(c);
    ++active_;
}

template <class Threading>
wait_decision task_group_state<Threading>::take_place(group_place& place) noexcept
{
    return this->guarded([&] { return take_place_locked(place); });
}

template <class Threading>
wait_decision task_group_state<Threading>::take_place_locked(group_place& place) noexcept
{
    if (closed_)
        return wait_decision::refused(errc::closed);
    if (!has_free_place() || !placers_.empty() || !queued_.empty())
        return wait_decision::refused(errc::rejected);
    reserve_place(place);
    return wait_decision::granted();
}

template <class Threading>
void task_group_state<Threading>::reserve_place(group_place& place) noexcept
{
    ++places_;
    if (reserved_++ == 0)
        late_cancellation_ = asio::cancellation_type::none;
    place.cancellations_before = cancellations_;
}

template <class Threading>
wait_decision task_group_state<Threading>::try_place(group_place& place) noexcept
{
    const wait_decision d = take_place(place);
    return d.is_refused() && d.code() == errc::rejected ? wait_decision::pending() : d;
}

template <class Threading>
void task_group_state<Threading>::give_place_back() noexcept
{
    change([&](ready_list& ready, post_chain& posts, child_list&) {
        --places_;
        --reserved_;
        settle(ready, posts);
    });
}

template <class Threading>
void task_group_state<Threading>::start_child(const child_ptr& c, group_place place) noexcept
{
    this->guarded([&] {
        --reserved_;
        begin(*c, true);
        if (place.cancellations_before != cancellations_) {
            c->was_cancelled_ = true;
            c->cancellation_ = late_cancellation_;
        }
    });
    run_start(c);
}

template <class Threading>
void task_group_state<Threading>::start_body(const child_ptr& c) noexcept
{
    this->guarded([&] {
        begin(*c, false);
        if (cancelled_ || decided_)
            c->cancellation_ = asio::cancellation_type::terminal;
    });
    run_start(c);
}

template <class Threading>
wait_decision task_group_state<Threading>::queue_child(const child_ptr& c) noexcept
{
    return change([&](ready_list& ready, post_chain& posts, child_list&) {
        if (closed_)
            return wait_decision::refused(errc::closed);
        intrusive_ptr_add_ref(c.get());
        c->ticket_ = ++next_ticket_;
        queued_.push_back(*c);
        ++queued_size_;
        settle_places(ready, posts);
        return wait_decision::granted();
    });
}

template <class Threading>
void task_group_state<Threading>::settle_places(ready_list& ready, post_chain& posts) noexcept
{
    while (has_free_place()) {
        auto* w =
            placers_.empty() ? nullptr : &static_cast<group_waiter<Threading>&>(placers_.front());
        if (w && (queued_.empty() || w->ticket < queued_.front().ticket_)) {
            placers_.pop_front();
            reserve_place(w->place);
            w->grant();
            ready.push_back(*w);
        } else if (!queued_.empty()) {
            const child_ptr c(&queued_.front(), false);
            queued_.pop_front();
            --queued_size_;
            ++places_;
            begin(*c, true);
            add(*c, posts); // starts on its strand
        } else {
            return;
        }
    }
}

template <class Threading>
void task_group_state<Threading>::settle(ready_list& ready, post_chain& posts) noexcept
{
    settle_places(ready, posts);
    while (!nexts_.empty() && !results_.empty()) {
        auto& w = static_cast<group_waiter<Threading>&>(take_front(nexts_));
        w.result = &results_.front();
        results_.pop_front();
        ++results_out_;
        w.grant();
        ready.push_back(w);
    }
    const auto grant = [](waiter& w) { w.grant(); };
    if (is_drained())
        this->decide_each(nexts_, ready, grant);
    if (closed_ && is_idle())
        this->decide_each(this->queue_, ready, grant);
}

template <class Threading>
void task_group_state<Threading>::end_child(child& c, std::exception_ptr exception,
                                            bool on_strand) noexcept
{
    errors_type error; // of one element, which is moved under the lock
    bool is_cancelled = false;
    if (exception) {
        is_cancelled = failure(exception).is_cancelled();
        try {
            error.push_back(exception);
        } catch (...) {
            // Without memory for the exception it counts, but is not reported.
        }
    }
    boost::intrusive_ptr<task_group_state> reference;
    bool gives_strand_back = false;
    change([&](ready_list& ready, post_chain& posts, child_list& discarded) {
        running_.erase(running_.iterator_to(c));
        --active_;
        c.phase_ = phase_type::ended;
        // A child that is posted drops its reference when that task runs.
        if (!c.is_posted_) {
            reference.swap(c.state_);
            gives_strand_back = on_strand;
        } else {
            reference = c.state_;
        }
        const bool succeeded = !exception;
        bool ends_group = false;
        if (succeeded) {
            ++totals_.succeeded;
            ends_group = policy_ == join_policy::first_success && c.has_place_;
        } else if (is_cancelled && c.was_cancelled_) {
            ++totals_.cancelled;
        } else {
            ++totals_.failed;
            if (policy_ != join_policy::first_success || !decided_)
                errors_.splice(errors_.end(), error);
            ends_group = policy_ == join_policy::fail_fast;
        }
        if (succeeded && has_results_ && c.has_place_) {
            intrusive_ptr_add_ref(&c);
            results_.push_back(c);
            if (joining_)
                leave_place(c);
        } else {
            leave_place(c);
        }
        if (ends_group && !decided_ && !is_shut_down_) {
            decided_ = true;
            close_locked(ready);
            cancel_locked(asio::cancellation_type::terminal, ready, posts, discarded);
        }
        settle(ready, posts);
    });
    if (gives_strand_back)
        c.give_back_strand();
}

template <class Threading>
void task_group_state<Threading>::leave_place(child& c) noexcept
{
    if (std::exchange(c.has_place_, false))
        --places_;
}

template <class Threading>
void task_group_state<Threading>::close_locked(ready_list& ready) noexcept
{
    closed_ = true;
    this->decide_each(placers_, ready, [](waiter& w) { w.fail(errc::closed); });
}

template <class Threading>
void task_group_state<Threading>::close() noexcept
{
    change([&](ready_list& ready, post_chain& posts, child_list&) {
        close_locked(ready);
        settle(ready, posts);
    });
}

template <class Threading>
bool task_group_state<Threading>::is_closed() noexcept
{
    return this->guarded([&] { return closed_; });
}

template <class Threading>
void task_group_state<Threading>::request_cancellation(child& c, asio::cancellation_type_t type,
                                                       post_chain& posts) noexcept
{
    c.was_cancelled_ = true;
    c.cancellation_ |= type;
    if (c.phase_ == phase_type::running && !c.is_posted_)
        add(c, posts);
}

template <class Threading>
void task_group_state<Threading>::cancel_locked(asio::cancellation_type_t type, ready_list& ready,
                                                post_chain& posts, child_list& discarded) noexcept
{
    ++cancellations_;
    late_cancellation_ |= type;
    totals_.cancelled += queued_size_;
    queued_size_ = 0;
    discarded.splice(discarded.end(), queued_);
    this->decide_each(placers_, ready, [](waiter& w) { w.abort(); });
    for (child& c : running_)
        request_cancellation(c, type, posts);
}

template <class Threading>
void task_group_state<Threading>::cancel(asio::cancellation_type_t type) noexcept
{
    if (type == asio::cancellation_type::none)
        return;
    change([&](ready_list& ready, post_chain& posts, child_list& discarded) {
        cancelled_ = true;
        cancel_locked(type, ready, posts, discarded);
        settle(ready, posts);
    });
}

template <class Threading>
bool task_group_state<Threading>::abandon() noexcept
{
    return change([&](ready_list& ready, post_chain& posts, child_list& discarded) {
        const bool expected = is_idle() || cancelled_ || decided_ || is_shut_down_ ||
                              this->object_executor().has_stopped();
        closed_ = true;
        if (!is_shut_down_)
            cancel_locked(asio::cancellation_type::terminal, ready, posts, discarded);
        discarded.splice(discarded.end(), results_);
        return expected;
    });
}

template <class Threading>
void task_group_state<Threading>::shut_down() noexcept
{
    child_list dropped;
    this->guarded([&] {
        is_shut_down_ = true;
        closed_ = true;
        queued_size_ = 0;
        dropped.splice(dropped.end(), queued_);
        dropped.splice(dropped.end(), results_);
    });
    release(dropped);
    wait_state<Threading>::shut_down();
}

template <class Threading>
task_group_stats task_group_state<Threading>::stats() noexcept
{
    return this->guarded([&] {
        task_group_stats s = totals_;
        s.running = active_;
        s.queued = queued_size_;
        s.results = results_.size() + results_out_;
        s.waiting = this->waiters();
        return s;
    });
}

template <class Threading>
std::vector<task_group_child> task_group_state<Threading>::children()
{
    // The names are copied under the lock, but the memory of the vector is allocated before.
    std::vector<task_group_child> all;
    for (;;) {
        bool fits = false;
        std::exception_ptr thrown;
        this->guarded([&] {
            fits = active_ <= all.capacity();
            try {
                for (auto c = running_.begin(); fits && c != running_.end(); ++c)
                    all.push_back({c->id_, c->name_});
            } catch (...) {
                thrown = std::current_exception();
            }
        });
        if (thrown)
            std::rethrow_exception(thrown);
        if (fits)
            return all;
        all.reserve(this->guarded([&] { return active_; }) + 8);
    }
}

template <class Threading>
std::vector<std::exception_ptr> task_group_state<Threading>::errors()
{
    std::vector<std::exception_ptr> all;
    std::exception_ptr thrown;
    this->guarded([&] {
        try {
            all.assign(errors_.begin(), errors_.end());
        } catch (...) {
            thrown = std::current_exception();
        }
    });
    if (thrown)
        std::rethrow_exception(thrown);
    return all;
}

template <class Threading>
std::pair<error_code, std::exception_ptr> task_group_state<Threading>::report() noexcept
{
    try {
        std::vector<std::exception_ptr> all = errors();
        const bool succeeded =
            policy_ == join_policy::first_success && this->guarded([&] { return decided_; });
        if (all.empty() || succeeded)
            return {};
        const error_code first = failure(all.front()).code();
        return {first, combined_error(std::move(all))};
    } catch (...) {
        return {make_error_code(boost::system::errc::not_enough_memory), std::current_exception()};
    }
}

template <class Threading>
void task_group_state<Threading>::join_locked(bool closes, ready_list& ready,
                                              post_chain& posts) noexcept
{
    if (!closes)
        return;
    close_locked(ready);
    if (!std::exchange(joining_, true))
        for (child& c : results_)
            leave_place(c);
    settle_places(ready, posts);
}

template <class Threading>
wait_decision task_group_state<Threading>::try_join(bool closes) noexcept
{
    return change([&](ready_list& ready, post_chain& posts, child_list&) {
        join_locked(closes, ready, posts);
        settle(ready, posts);
        return closed_ && is_idle() ? wait_decision::granted() : wait_decision::pending();
    });
}

template <class Threading>
wait_decision task_group_state<Threading>::next_locked(child*& result) noexcept
{
    if (!results_.empty() && nexts_.empty()) {
        result = &results_.front();
        results_.pop_front();
        ++results_out_;
        return wait_decision::granted();
    }
    return is_drained() ? wait_decision::granted() : wait_decision::pending();
}

template <class Threading>
wait_decision task_group_state<Threading>::try_next(child*& result) noexcept
{
    return this->guarded([&] { return next_locked(result); });
}

template <class Threading>
void task_group_state<Threading>::put_back_locked(child* result) noexcept
{
    if (!result)
        return;
    --results_out_;
    results_.push_front(*result);
}

template <class Threading>
void task_group_state<Threading>::put_result_back(child* result) noexcept
{
    change([&](ready_list& ready, post_chain& posts, child_list&) {
        put_back_locked(result);
        settle(ready, posts);
    });
}

template <class Threading>
void task_group_state<Threading>::result_taken(child& c) noexcept
{
    change([&](ready_list& ready, post_chain& posts, child_list&) {
        --results_out_;
        leave_place(c);
        settle(ready, posts);
    });
}

template <class Threading>
bool task_group_state<Threading>::admit(waiter& w) noexcept
{
    auto& g = static_cast<group_waiter<Threading>&>(w);
    switch (g.kind) {
    case group_wait::join:
        g.decide(closed_ && is_idle() ? wait_decision::granted() : wait_decision::pending());
        break;
    case group_wait::place:
        g.decide(take_place_locked(g.place));
        if (g.decision().is_refused() && g.decision().code() == errc::rejected)
            g.reopen();
        break;
    case group_wait::next:
        g.decide(next_locked(g.result));
        break;
    }
    if (!g.is_pending())
        return true;
    g.ticket = ++next_ticket_;
    (g.kind == group_wait::join    ? this->queue_
     : g.kind == group_wait::place ? placers_
                                   : nexts_)
        .push_back(w);
    return false;
}

template <class Threading>
void task_group_state<Threading>::reconsider(ready_list& ready) noexcept
{
    settle_in_update(ready);
}

// Within an update() of the base class. The tasks are posted under the lock: they are not handlers
// of a user, and do not run inside the post.
template <class Threading>
void task_group_state<Threading>::settle_in_update(ready_list& ready) noexcept
{
    post_chain posts;
    settle(ready, posts);
    for (child* c = posts.first; c;) {
        child& posted = *std::exchange(c, c->next_posted_);
        if (posted.post_to_strand()) [[likely]]
            continue;
        // The executor has no memory: the child waits for a place again, until the next change.
        // Neither reference is the last: the caller holds one to the state.
        posted.is_posted_ = false;
        running_.erase(running_.iterator_to(posted));
        --active_;
        --totals_.spawned;
        leave_place(posted);
        posted.state_.reset();
        posted.phase_ = phase_type::queued;
        queued_.push_front(posted); // takes over the reference
        ++queued_size_;
    }
}

template <class Threading>
void task_group_state<Threading>::take_back(waiter& w, ready_list& ready) noexcept
{
    return_handle(w, ready);
    settle_in_update(ready);
}

template <class Threading>
void task_group_state<Threading>::return_handle(waiter& w, ready_list&) noexcept
{
    auto& g = static_cast<group_waiter<Threading>&>(w);
    if (g.kind == group_wait::place) {
        --places_;
        --reserved_;
    } else if (g.kind == group_wait::next) {
        put_back_locked(std::exchange(g.result, nullptr));
    }
}

template <class Threading>
void task_group_state<Threading>::take_all(waiter_list& out) noexcept
{
    out.splice(out.end(), this->queue_);
    out.splice(out.end(), placers_);
    out.splice(out.end(), nexts_);
}

template class group_child<thread_safe>;
template class group_child<strand_confined>;
template class task_group_state<thread_safe>;
template class task_group_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
