#pragma once

#include <turnstile/core/detail/handler_allocator.hpp>
#include <turnstile/core/detail/handler_executor.hpp>
#include <turnstile/core/detail/operation_start.hpp>
#include <turnstile/core/detail/supervised_operation.hpp>
#include <turnstile/core/detail/supervision.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace turnstile::detail {

// Supervision of operations with such a signature. Their handlers do not know the caller's, so
// that an operation is compiled once for all who supervise it.
template <class Signature, class Executor, class Clock, class Allocator>
class supervised_operations : public supervision<Executor, Clock, Allocator> {
    using base = supervision<Executor, Clock, Allocator>;
    using party = typename base::party;

public:
    using operation_type = supervised_operation<Signature>;
    using result_type = typename operation_type::result_type;

protected:
    using base::base;

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
            this->word_.raise(supervisor_word::completed);
            return;
        }
        if (!op.end_start())
            this->word_.drop();
    }

    // The result for the handler, which gets it when everybody has left.
    void finish(result_type&& result)
    {
        this->stop_timer();
        final_.emplace(std::move(result));
    }
    bool is_finished() const noexcept { return final_.has_value(); }

    std::optional<result_type> final_;

private:
    class operation_handler : public base::party_handler {
    public:
        using cancellation_slot_type = asio::cancellation_slot;

        operation_handler(supervised_operations& s, operation_type& op) noexcept
            : base::party_handler(s), operation_(&op)
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
            if (p->strand().running_in_this_thread()) [[likely]] {
                operation_->result.emplace(std::forward<Args>(args)...);
                return p.arrive(supervisor_word::completed);
            }
            // Not every operation knows that it has to complete on the handler's executor.
            const auto strand = p->strand();
            asio::dispatch(strand, [p = std::move(p), op = operation_,
                                    r = result_type(std::forward<Args>(args)...)]() mutable {
                op->result.emplace(std::move(r));
                p.arrive(supervisor_word::completed);
            });
        }

    private:
        operation_type* operation_;
    };
};

// The first base, and so the last to go: the handler may own the context.
template <class Handler>
struct handler_holder {
    Handler handler_;
};

// A supervisor: Derived has begin(), which arms what it needs and starts an operation, and
// handle().
template <class Derived, class Signature, class Handler, class Executor, class Clock>
class supervisor : handler_holder<Handler>,
                   public supervised_operations<Signature, Executor, Clock,
                                                asio::associated_allocator_t<Handler>> {
    using base =
        supervised_operations<Signature, Executor, Clock, asio::associated_allocator_t<Handler>>;

public:
    // Makes one and starts it, by begin(derived).
    template <class... Args, class Begin>
    static void run(Handler handler, const Executor& executor, Begin&& begin, Args&&... args)
    {
        Derived& self = *make_in_memory_of<Derived>(handler, [&](void* memory) {
            return new (memory) Derived(std::move(handler), executor, std::forward<Args>(args)...);
        });
        typename base::initiator initiator(self);
        self.connect(self.handler_);
        std::forward<Begin>(begin)(self);
        initiator.done();
    }

protected:
    supervisor(Handler&& handler, const Executor& executor)
        : handler_holder<Handler>{std::move(handler)},
          base(executor, asio::get_associated_allocator(this->handler_))
    {
    }
    ~supervisor() = default;

private:
    void conclude(bool on_the_strand) final
    {
        if (!this->final_ || this->word_.is_dropped()) {
            [[maybe_unused]] const Handler dropped = release_handler();
            return;
        }
        typename base::result_type result(std::move(*this->final_));
        const Executor executor = this->executor();
        Handler handler = release_handler();
        if (on_the_strand)
            return call_from_executor()(std::move(handler), std::move(result));
        post_handler(std::move(handler), executor, std::move(result));
    }

    // Ends the supervisor and frees its memory, which the handler may use again.
    Handler release_handler()
    {
        Handler handler(std::move(this->handler_));
        destroy_with(handler_allocator<Derived>(handler), static_cast<Derived*>(this));
        return handler;
    }
};

} // namespace turnstile::detail
