// SPDX-License-Identifier: BSL-1.0
// The common part of timeout, retry and hedge: a supervisor runs operations for the handler of a
// caller, and can cancel each of them. This class knows neither the handler nor the operations, and
// is compiled once for many supervisors: it has the strand, the deadline and the state word.
//
// A cancellation signal must not be emitted while the operation makes progress. Every event (an
// operation completes, the timer expires, the caller cancels) therefore goes through a strand of
// the supervisor, on top of the executor of the handler. On the strand, handle() of the derived
// class decides on the next step, and finally calls finish().
//
// Every outstanding part of the call is a party: an operation, a wait of the timer, a cancellation
// that is dispatched to the strand. The handler is called when the last party has left.
//
// The initiating function starts the first operation, outside the strand. Until it ends, the state
// word is not open: events stay in the word, and are not handled. An event that was sent to the
// strand before that end is handled after everything that the initiating function has queued there:
// a coroutine that is cancelled before its first step there would end the process.
//
// Invariants: handle() runs on the strand only; the call completes once, after every operation has
// completed.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/call/call_cancellation.hpp>
#include <turnstile/detail/call/deadline_service.hpp>
#include <turnstile/detail/call/supervisor_word.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Executor, class Clock, class Allocator>
class supervision : private call_cancellation::target {
public:
    using executor_type = Executor;
    using lease_type = strand_lease<Executor>;
    using strand_type = typename lease_type::executor_type;
    using time_point = typename Clock::time_point;
    using allocator_type = Allocator;

    supervision(const supervision&) = delete;
    supervision& operator=(const supervision&) = delete;

    const executor_type& executor() const noexcept { return executor_; }
    const allocator_type& get_allocator() const noexcept { return allocator_; }
    const lease_type& lease() const noexcept { return lease_; }
    const strand_type& strand() const noexcept { return lease_.executor(); }

protected:
    supervision(const Executor& executor, const Allocator& allocator)
        : allocator_(allocator), executor_(executor), lease_(executor_), deadline_(*this)
    {
    }
    ~supervision()
    {
        if (relay_)
            relay_->disconnect();
    }

    // Decides on the events. Called on the strand.
    virtual void handle(supervised_events events) = 0;
    // Completes the call. The last party has left, so no other thread uses the supervisor. If it is
    // not called on the strand, it may be inside the initiating function, where the handler must
    // not be called.
    virtual void conclude(bool on_the_strand) = 0;

    // Connects the cancellation slot of the handler.
    template <class Handler>
    void connect(const Handler& handler)
    {
        relay_ = call_cancellation::connect(handler, *this);
    }

    // Starts or restarts the timer. With time_point::max() it never expires.
    void start_timer(time_point when)
    {
        if (when == time_point::max())
            return;
        if (!deadlines_)
            deadlines_ = &asio::use_service<deadline_service<Clock>>(
                asio::query(executor_, asio::execution::context));
        word_.join(); // before the timer may expire on another thread
        bool is_party = false;
        try {
            is_party =
                deadlines_->start(deadline_, saturating_nanoseconds(when.time_since_epoch()));
        } catch (...) {
            word_.leave();
            throw;
        }
        if (!is_party) // it was one before
            word_.leave();
    }

    void stop_timer() noexcept
    {
        if (!deadlines_)
            return;
        const auto stopped = deadlines_->stop(deadline_);
        if (stopped.needs_look)
            look_for_deadlines();
        if (stopped.was_waiting)
            word_.leave(); // the caller is another party
    }

    // Has the effect of a timer that expires at once.
    void expire_at_once() noexcept { word_.raise(supervisor_word::expired); }

    // Counts as a party as long as it exists.
    class party {
    public:
        explicit party(supervision& s) noexcept : self_(&s) { s.word_.join(); }
        party(supervision& s, std::adopt_lock_t) noexcept : self_(&s) {}
        party(party&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
        party& operator=(party&&) = delete;
        ~party()
        {
            try {
                if (self_)
                    leave(false);
            } catch (...) { // there is no memory to complete the call
            }
        }

        explicit operator bool() const noexcept { return self_ != nullptr; }
        supervision* operator->() const noexcept { return self_; }

        // Handles events, and leaves. Called on the strand.
        void arrive(supervisor_word::bits events)
        {
            bool last = false;
            if (self_->word_.raise_or_leave(events, last)) {
                self_->look();
                return leave(true);
            }
            supervision* s = std::exchange(self_, nullptr);
            if (last)
                s->last_one_left(true);
        }
        void leave(bool on_the_strand)
        {
            supervision* s = std::exchange(self_, nullptr);
            if (s->word_.leave())
                s->last_one_left(on_the_strand);
        }
        // The party continues without this object.
        void detach() noexcept { self_ = nullptr; }

        // This party will not complete. The supervisor stops the timer; if the initiating function
        // is still running, it does so at its end.
        void drop() noexcept
        {
            if (!self_ || !self_->word_.drop())
                return;
            try {
                bring_home(std::move(*this), 0);
            } catch (...) {
            }
        }

    private:
        supervision* self_;
    };

    // The base class of the handlers of parties: their executor and allocator, and a destructor
    // that drops the party if the handler was not called.
    class party_handler {
    public:
        using executor_type = strand_type;
        using allocator_type = Allocator;

        explicit party_handler(supervision& s) noexcept : allocator_(s.allocator_), party_(s) {}
        explicit party_handler(party&& p) noexcept : allocator_(p->allocator_), party_(std::move(p))
        {
        }
        party_handler(party_handler&&) noexcept = default;
        ~party_handler() { party_.drop(); }

        executor_type get_executor() const noexcept { return party_->strand(); }
        // A copy, because Asio calls this also after a move of the handler.
        allocator_type get_allocator() const noexcept { return allocator_; }

    private:
        [[no_unique_address]] allocator_type allocator_;

    protected:
        party party_;
    };

    // Brings the expired timer to the strand.
    class expiry_handler : public party_handler {
    public:
        using party_handler::party_handler;

        void operator()()
        {
            party p(std::move(this->party_));
            switch (p->deadlines_->arrive(p->deadline_)) {
            case deadline_scheduler::arrival::expired:
                return p.arrive(supervisor_word::expired);
            case deadline_scheduler::arrival::stopped:
                return p.arrive(0);
            case deadline_scheduler::arrival::restarted:
                return p.detach();
            }
        }
    };

    // The timer. While it is waiting or fired, it is a party.
    class call_deadline final : public deadline_entry {
    public:
        explicit call_deadline(supervision& s) noexcept : deadline_entry(&run), self_(&s) {}

    private:
        bool post() noexcept override { return self_->try_post(*this); }

        static void run(intrusive_task& task, task_action action)
        {
            party p(*static_cast<call_deadline&>(task).self_, std::adopt_lock);
            if (action == task_action::destroy)
                return p.drop();
            const strand_type strand = p->strand();
            asio::dispatch(strand, expiry_handler(std::move(p)));
        }

        supervision* self_;
    };

    // The party of the initiating function.
    class initiator {
    public:
        explicit initiator(supervision& self) noexcept : self_(&self) {}
        initiator(const initiator&) = delete;
        initiator& operator=(const initiator&) = delete;
        ~initiator() // without done(): the initiating function throws
        {
            if (!self_)
                return;
            self_->stop_timer();
            self_->word_.drop();
            const party mine(*self_, std::adopt_lock);
        }

        void done()
        {
            supervision* s = std::exchange(self_, nullptr);
            bool last = false;
            if (!s->word_.open_and_leave(last))
                s->look_on_the_strand(party(*s, std::adopt_lock));
            else if (last)
                s->last_one_left(false);
        }

    private:
        supervision* self_;
    };

    supervisor_word word_;

private:
    // Brings a party to the strand, through the executor of the strand: a strand that has no memory
    // to post itself would never run again, and on its own executor it need not post.
    static void bring_home(party p, supervisor_word::bits events)
    {
        const executor_type executor = p->executor_;
        asio::dispatch(executor, [p = std::move(p), events]() mutable {
            const strand_type strand = p->strand();
            asio::dispatch(strand, [p = std::move(p), events]() mutable { p.arrive(events); });
        });
    }

    // Opens the word on the strand, and handles the events. If it is destroyed instead, because the
    // strand has no memory for it, it opens the word for the other parties.
    struct opener {
        explicit opener(party&& p) noexcept : helper(std::move(p)) {}
        opener(opener&&) noexcept = default;
        ~opener()
        {
            if (helper)
                helper->word_.open();
        }
        void operator()()
        {
            helper->word_.open();
            helper.arrive(0);
        }

        party helper;
    };

    bool try_post(intrusive_task& task) noexcept
    {
        word_.announce();
        try {
            return posting_executor(executor_).post(task);
        } catch (...) {
            return false;
        }
    }

    void look_for_deadlines() noexcept
    {
        try {
            deadlines_->look_again(posting_executor(executor_));
        } catch (...) {
            deadlines_->look_again(posting_executor());
        }
    }

    // Called by the initiating function if there are events: posts a helper, which opens the word
    // on the strand and handles the events.
    //
    // Without memory for the helper, the party of the timer handles them: it is recalled, and needs
    // no memory for that. If the timer is no party, the initiating function throws, as if the
    // operation had not been started.
    void look_on_the_strand(party p)
    {
        try {
            const executor_type executor = executor_;
            asio::post(executor, [helper = party(*this)]() mutable {
                const strand_type strand = helper->strand();
                asio::dispatch(strand, opener(std::move(helper)));
            });
        } catch (...) {
            if (deadlines_)
                deadlines_->recall(deadline_);
            if (!word_.open_unless_last())
                throw;
        }
        p.leave(false);
    }

    // Handles the events, and further events that are added meanwhile. Called on the strand. A call
    // inside handle() does nothing, because the outer call goes on.
    void look()
    {
        if (looking_)
            return;
        struct scope {
            bool& looking;
            ~scope() { looking = false; }
        } looking{looking_ = true};
        while (const auto taken = word_.take()) {
            if (word_.is_dropped())
                stop_timer();
            else
                handle_or_drop(supervisor_word::events(taken));
        }
    }

    // If handle() throws, there is no result to deliver: the timer is stopped, and the handler of
    // the caller is destroyed when the last party has left.
    void handle_or_drop(supervised_events events)
    {
        try {
            handle(events);
        } catch (...) {
            word_.drop();
            stop_timer();
            throw;
        }
    }

    void last_one_left(bool on_the_strand)
    {
        if (relay_)
            relay_->disconnect();
        conclude(on_the_strand);
    }

    bool try_hold() noexcept override { return word_.try_join(); }
    void accept(asio::cancellation_type_t type) override
    {
        word_.announce();
        bring_home(party(*this, std::adopt_lock), supervisor_word::cancelled(type));
    }

    bool looking_ = false;
    [[no_unique_address]] Allocator allocator_;
    executor_type executor_;
    lease_type lease_;
    std::shared_ptr<call_cancellation> relay_;
    deadline_service<Clock>* deadlines_ = nullptr; // set when the timer is started
    call_deadline deadline_;
};

} // namespace turnstile::inline v0_1::detail
