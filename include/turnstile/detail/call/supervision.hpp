// SPDX-License-Identifier: BSL-1.0
#pragma once

// Running operations on behalf of a handler, with the means to cancel each of them: what
// timeout, retry and hedge have in common.
//
// A cancellation signal must not be emitted while the operation moves on, so everything that
// happens (an operation completes, the timer expires, the caller cancels) goes through a
// strand of the supervisor's own, on top of the handler's executor. There, handle() of the
// derived class decides what to do next; sooner or later it calls finish().
//
// Whatever is under way is a party: operations, the wait of the timer, a caller's
// cancellation on its way to the strand. The handler is called when the last one has left. So
// everything is awaited before the caller goes on, and there is one completion.
//
// The first operation is started by the initiating function, as ever, which is outside the
// strand: until it is done, the gate is closed, and what happens meanwhile waits.

#include <turnstile/core/clock.hpp>
#include <turnstile/detail/call/call_cancellation.hpp>
#include <turnstile/detail/call/supervisor_word.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A strand on top of an executor; one that is a strand already will do.
template <class Executor>
struct serial {
    using type = asio::strand<Executor>;
    static type make(const Executor& executor) { return asio::make_strand(executor); }
};
template <class Executor>
struct serial<asio::strand<Executor>> {
    using type = asio::strand<Executor>;
    static type make(const type& executor) noexcept { return executor; }
};

// The part of a supervisor that knows neither its handler nor its operations, and so is compiled
// once for many: who is under way, the strand, the timer.
template <class Executor, class Clock, class Allocator>
class supervision : private call_cancellation::target {
public:
    using executor_type = Executor;
    using strand_type = typename serial<executor_type>::type;
    using time_point = typename Clock::time_point;

    supervision(const supervision&) = delete;
    supervision& operator=(const supervision&) = delete;

    const executor_type& executor() const noexcept { return executor_; }
    const strand_type& strand() const noexcept { return strand_; }

protected:
    supervision(const Executor& executor, const Allocator& allocator)
        : allocator_(allocator), executor_(executor),
          strand_(serial<executor_type>::make(executor_))
    {
    }
    ~supervision()
    {
        if (relay_)
            relay_->disconnect();
    }

    // On the strand: decides what to do next.
    virtual void handle(supervised_events events) = 0;
    // Nothing is under way any more, so nobody else knows this supervisor. Off the strand it
    // may be inside the initiating function, where the handler must not be called.
    virtual void conclude(bool on_the_strand) = 0;

    // Lets whoever has the handler's signal cancel this.
    template <class Handler>
    void connect(const Handler& handler)
    {
        relay_ = call_cancellation::connect(handler, *this);
    }

    // Starts the timer, again if need be; it never expires if the time is as late as can be.
    void start_timer(time_point when)
    {
        if (when == time_point::max())
            return;
        if (!timer_)
            timer_.emplace(executor_);
        timer_->expires_at(when);
        try {
            timer_->async_wait(timer_handler(*this, ++last_wait_));
        } catch (...) {
            word_.undrop(); // there was no memory for it, which is not the end of the others
            throw;
        }
    }

    void stop_timer() noexcept
    {
        try {
            if (timer_)
                timer_->cancel();
        } catch (...) { // then it expires, and nobody minds
        }
    }

    // As if the timer had expired right now.
    void expire_at_once() noexcept { word_.raise(supervisor_word::expired); }

    // Counts as a party for as long as it lives.
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
            } catch (...) { // there is no memory to tell anybody
            }
        }

        explicit operator bool() const noexcept { return self_ != nullptr; }
        supervision* operator->() const noexcept { return self_; }

        // On the strand, with events: looks at them, and leaves.
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

        // This party will not complete. The others should end soon; but if the initiating
        // function is still at work, it sees to that itself.
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

    // What the handlers of parties have in common: where they run, and that being destroyed
    // instead of called matters.
    class party_handler {
    public:
        using executor_type = strand_type;
        using allocator_type = Allocator;

        explicit party_handler(supervision& s) noexcept : allocator_(s.allocator_), party_(s) {}
        party_handler(party_handler&&) noexcept = default;
        ~party_handler() { party_.drop(); }

        executor_type get_executor() const noexcept { return party_->strand_; }
        // Asio asks for it also when it has moved from the handler.
        allocator_type get_allocator() const noexcept { return allocator_; }

    private:
        [[no_unique_address]] allocator_type allocator_;

    protected:
        party party_;
    };

    class timer_handler : public party_handler {
    public:
        timer_handler(supervision& s, unsigned wait) noexcept : party_handler(s), wait_(wait) {}

        // It may come too late to be told that its wait was given up for another.
        void operator()(const error_code& ec)
        {
            party p(std::move(this->party_));
            const bool expired = !ec && wait_ == p->last_wait_;
            p.arrive(expired ? supervisor_word::expired : 0);
        }

    private:
        unsigned wait_;
    };

    // The initiating function's own party.
    class initiator {
    public:
        explicit initiator(supervision& self) noexcept : self_(&self) {}
        initiator(const initiator&) = delete;
        initiator& operator=(const initiator&) = delete;
        ~initiator() // without done(): something has thrown
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
    // To the strand, from wherever this is, by way of its executor: a strand that has no
    // memory to post itself is stuck for ever, and this way it need not.
    static void bring_home(party p, supervisor_word::bits events)
    {
        const executor_type executor = p->executor_;
        asio::dispatch(executor, [p = std::move(p), events]() mutable {
            const strand_type strand = p->strand_;
            asio::dispatch(strand, [p = std::move(p), events]() mutable { p.arrive(events); });
        });
    }

    // For the initiating function, if something has happened already: somebody else opens the
    // gate, and looks.
    //
    // Without memory for that: the timer's party looks, which is called without any; or if
    // that is over, nobody is left, and it is as if the operation had not been started. The
    // gate is still closed, so nobody else uses the timer.
    void look_on_the_strand(party p)
    {
        try {
            const executor_type executor = executor_;
            asio::post(executor, [helper = party(*this)]() mutable {
                helper->word_.open();
                bring_home(std::move(helper), 0);
            });
        } catch (...) {
            stop_timer();
            if (!word_.open_unless_last())
                throw;
        }
        p.leave(false);
    }

    // On the strand. What happens while it looks is seen by the same look.
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

    // If it throws, there is no result to deliver: the others should end soon, and then the
    // caller's handler is destroyed.
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
        bring_home(party(*this, std::adopt_lock), supervisor_word::cancelled(type));
    }

    bool looking_ = false;
    unsigned last_wait_ = 0; // of the timer
    [[no_unique_address]] Allocator allocator_;
    executor_type executor_;
    strand_type strand_;
    std::shared_ptr<call_cancellation> relay_;
    std::optional<asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, executor_type>>
        timer_;
};

} // namespace turnstile::inline v0_1::detail
