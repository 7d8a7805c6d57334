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
#include <turnstile/core/detail/cancel_relay.hpp>
#include <turnstile/core/detail/handler_allocator.hpp>
#include <turnstile/core/detail/handler_executor.hpp>
#include <turnstile/core/detail/operation_start.hpp>
#include <turnstile/core/detail/supervised_operation.hpp>
#include <turnstile/core/detail/supervisor_word.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

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

template <class Derived, class Signature, class Handler, class Executor, class Clock>
class supervisor : private cancel_relay::target {
public:
    using operation_type = supervised_operation<Signature>;
    using result_type = typename operation_type::result_type;
    using executor_type = Executor;
    using strand_type = typename serial<executor_type>::type;
    using time_point = typename Clock::time_point;

    // Makes one and starts it: derived.begin() arms what it needs, and starts an operation.
    template <class... Args, class Begin>
    static void run(Handler handler, const Executor& executor, Begin&& begin, Args&&... args)
    {
        initiator self(make_in_memory_of<Derived>(handler, [&](void* memory) {
            return new (memory) Derived(std::move(handler), executor, std::forward<Args>(args)...);
        }));
        self->relay_ = cancel_relay::connect(self->handler_, *self);
        std::forward<Begin>(begin)(*self);
        self.done();
    }

    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;

protected:
    supervisor(Handler&& handler, const Executor& executor)
        : handler_(std::move(handler)), executor_(executor),
          strand_(serial<executor_type>::make(executor_))
    {
    }
    ~supervisor()
    {
        if (relay_)
            relay_->disconnect();
    }

    const strand_type& strand() const noexcept { return strand_; }

    // Starts an operation: `start` is called with a handler for it. What that throws is the
    // operation's failure; unless it has passed the handler on before: then the operation is
    // under way, and whoever has the handler completes it.
    template <class Start>
    void start_operation(operation_type& op, Start&& start)
    {
        op.begin_start();
        try {
            std::forward<Start>(start)(operation_handler(*this, op));
        } catch (...) {
            if (op.end_start())
                return;
            if constexpr (!result_traits<Signature>::can_make_failure)
                throw;
            op.not_started = std::current_exception();
            word_.raise(supervisor_word::completed);
            return;
        }
        if (!op.end_start())
            word_.drop();
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

    // The result for the handler, which gets it when everybody has left.
    void finish(result_type&& result)
    {
        stop_timer();
        final_.emplace(std::move(result));
    }
    bool is_finished() const noexcept { return final_.has_value(); }

private:
    using allocator_type = asio::associated_allocator_t<Handler>;

    // Counts as a party for as long as it lives.
    class party {
    public:
        explicit party(supervisor& s) noexcept : self_(&s) { s.word_.join(); }
        party(supervisor& s, std::adopt_lock_t) noexcept : self_(&s) {}
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
        supervisor* operator->() const noexcept { return self_; }

        // On the strand, with events: looks at them, and leaves.
        void arrive(supervisor_word::bits events)
        {
            bool last = false;
            if (self_->word_.raise_or_leave(events, last)) {
                self_->look();
                return leave(true);
            }
            supervisor* s = std::exchange(self_, nullptr);
            if (last)
                s->last_one_left(true);
        }
        void leave(bool on_the_strand)
        {
            supervisor* s = std::exchange(self_, nullptr);
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
        supervisor* self_;
    };

    // What the handlers below have in common: where they run, and that being destroyed
    // instead of called matters.
    class party_handler {
    public:
        using executor_type = strand_type;
        using allocator_type = typename supervisor::allocator_type;

        explicit party_handler(supervisor& s) noexcept
            : allocator_(asio::get_associated_allocator(s.handler_)), party_(s)
        {
        }
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
        timer_handler(supervisor& s, unsigned wait) noexcept : party_handler(s), wait_(wait) {}

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

    class operation_handler : public party_handler {
    public:
        using cancellation_slot_type = asio::cancellation_slot;

        operation_handler(supervisor& s, operation_type& op) noexcept
            : party_handler(s), operation_(&op)
        {
        }
        operation_handler(operation_handler&&) noexcept = default;
        ~operation_handler()
        {
            if (this->party_ && operation_->give_back()) [[maybe_unused]]
                const party leaves(std::move(this->party_));
        }

        cancellation_slot_type get_cancellation_slot() const noexcept
        {
            return operation_->signal.slot();
        }

        template <class... Args>
        void operator()(Args&&... args)
        {
            party p(std::move(this->party_));
            if (p->strand_.running_in_this_thread()) [[likely]] {
                operation_->result.emplace(std::forward<Args>(args)...);
                return p.arrive(supervisor_word::completed);
            }
            // Not every operation knows that it has to complete on the handler's executor.
            const strand_type strand = p->strand_;
            asio::dispatch(strand, [p = std::move(p), op = operation_,
                                    r = result_type(std::forward<Args>(args)...)]() mutable {
                op->result.emplace(std::move(r));
                p.arrive(supervisor_word::completed);
            });
        }

    private:
        operation_type* operation_;
    };

    // The initiating function's own party.
    class initiator {
    public:
        explicit initiator(Derived* self) noexcept : self_(self) {}
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

        Derived* operator->() const noexcept { return self_; }
        Derived& operator*() const noexcept { return *self_; }

        void done()
        {
            supervisor* s = std::exchange(self_, nullptr);
            bool last = false;
            if (!s->word_.open_and_leave(last))
                s->look_on_the_strand(party(*s, std::adopt_lock));
            else if (last)
                s->last_one_left(false);
        }

    private:
        Derived* self_;
    };

    Derived& derived() noexcept { return static_cast<Derived&>(*this); }

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
                derived().handle(supervisor_word::events(taken));
        }
    }

    // Nothing is under way any more, so nobody else knows this supervisor. Off the strand it
    // may be inside the initiating function, where the handler must not be called.
    void last_one_left(bool on_the_strand)
    {
        if (relay_)
            relay_->disconnect();
        if (!final_ || word_.is_dropped()) {
            [[maybe_unused]] const Handler dropped = release_handler();
            return;
        }
        result_type result(std::move(*final_));
        const executor_type executor = executor_;
        Handler handler = release_handler();
        if (on_the_strand)
            return call_handler(std::move(handler), std::move(result));
        post_handler(std::move(handler), executor, std::move(result));
    }

    // Ends the supervisor and frees its memory, which the handler may use again.
    Handler release_handler()
    {
        Handler handler(std::move(handler_));
        destroy_with(handler_allocator<Derived>(handler), &derived());
        return handler;
    }

    bool try_hold() noexcept override { return word_.try_join(); }
    void accept(asio::cancellation_type_t type) override
    {
        bring_home(party(*this, std::adopt_lock), supervisor_word::cancelled(type));
    }

    supervisor_word word_;
    bool looking_ = false;
    unsigned last_wait_ = 0; // of the timer
    Handler handler_;
    executor_type executor_;
    strand_type strand_;
    std::shared_ptr<cancel_relay> relay_;
    std::optional<result_type> final_;
    std::optional<asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, executor_type>>
        timer_;
};

} // namespace turnstile::detail
