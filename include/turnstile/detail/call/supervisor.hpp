// SPDX-License-Identifier: BSL-1.0
// The types of a supervisor that depend on its operations and on the handler of the caller.
// supervision.hpp explains the mechanism. Timeout, retry and hedge each derive a class from
// `supervisor` with begin(), which starts the first operation, and handle(), which decides on
// events.
//
// - supervised_operations knows the completion signature. The handlers of its operations do not
//   depend on the handler of the caller, so that an operation is compiled once for all callers.
// - supervisor knows the handler of the caller. It is allocated with the allocator of the handler.
//
// Invariant: the handler is called once, after all operations have completed and the memory of the
// supervisor is free; or it is destroyed if a party was dropped.
#pragma once

#include <turnstile/detail/call/nothrow_results.hpp>
#include <turnstile/detail/call/operation_start.hpp>
#include <turnstile/detail/call/supervised_operation.hpp>
#include <turnstile/detail/call/supervision.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/block_cache.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Signature, class Executor, class Clock, class Allocator>
class supervised_operations : public supervision<Executor, Clock, Allocator> {
    using base = supervision<Executor, Clock, Allocator>;
    using party = typename base::party;

public:
    using operation_type = supervised_operation<Signature>;
    using result_type = typename operation_type::result_type;
    using box_type = typename operation_type::box_type;

protected:
    using base::base;

    // Starts an operation by calling `start` with a handler. If `start` throws, the operation has
    // failed with the exception. If `start` has passed the handler on before it throws, the
    // operation counts as started, and completes by calling the handler.
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
            op.thrown = std::current_exception();
            this->word_.raise(supervisor_word::completed);
            return;
        }
        if (!op.end_start())
            this->word_.drop();
    }

    // Sets the result of the call. The handler receives it when the last party has left.
    void finish(box_type&& result) noexcept
    {
        this->stop_timer();
        final_ = take_from(result);
        finished_ = true;
    }
    void finish_with(result_type&& result)
    {
        box_type box;
        box.emplace(std::move(result));
        finish(std::move(box));
    }
    bool is_finished() const noexcept { return finished_; }

    box_type final_;
    bool finished_ = false;

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
            box_type box;
            std::exception_ptr thrown;
            try {
                box.emplace(std::forward<Args>(args)...);
            } catch (...) {
                thrown = std::current_exception();
            }
            if (p->lease().is_current()) [[likely]]
                return complete(std::move(p), *operation_, std::move(box), std::move(thrown));
            // Some operations do not complete on the associated executor of their handler.
            const auto strand = p->strand();
            asio::dispatch(strand, [p = std::move(p), op = operation_, b = std::move(box),
                                    e = std::move(thrown)]() mutable {
                complete(std::move(p), *op, std::move(b), std::move(e));
            });
        }

    private:
        // On the strand. If moving the results threw an exception, the operation has failed with
        // it. If the completion signature cannot report a failure, the call is dropped.
        static void complete(party p, operation_type& op, box_type&& box, std::exception_ptr thrown)
        {
            if constexpr (!result_traits<Signature>::can_make_failure) {
                if (thrown) [[unlikely]] {
                    op.end();
                    p.drop();
                    std::rethrow_exception(thrown);
                }
            }
            op.result = take_from(box);
            op.thrown = std::move(thrown);
            p.arrive(supervisor_word::completed);
        }

        operation_type* operation_;
    };
};

// The allocator of a call: that of the handler, or by default a cache for the blocks of calls.
template <class Handler>
using call_allocator_t = asio::associated_allocator_t<Handler, cached_allocator<void>>;

template <class Handler>
call_allocator_t<Handler> call_allocator(const Handler& handler) noexcept
{
    return asio::get_associated_allocator(handler, cached_allocator<void>());
}

// The first base class, and so destroyed last, because the handler may own the execution context.
template <class Handler>
struct handler_holder {
    Handler handler_;
};

template <class Derived, class Signature, class Handler, class Executor, class Clock>
class supervisor
    : handler_holder<Handler>,
      public supervised_operations<Signature, Executor, Clock, call_allocator_t<Handler>> {
    using base = supervised_operations<Signature, Executor, Clock, call_allocator_t<Handler>>;

public:
    // Makes a supervisor, and starts it with begin(derived).
    template <class... Args, class Begin>
    static void run(Handler handler, const Executor& executor, Begin&& begin, Args&&... args)
    {
        Derived& self = *make_with<Derived>(call_allocator(handler), [&](void* memory) {
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
          base(executor, call_allocator(this->handler_))
    {
    }
    ~supervisor() = default;

private:
    void conclude(bool on_the_strand) final
    {
        if (!this->is_finished() || this->word_.is_dropped()) {
            [[maybe_unused]] const Handler dropped = release_handler();
            return;
        }
        typename base::box_type box = take_from(this->final_);
        const Executor executor = this->executor();
        Handler handler = release_handler();
        if constexpr (needs_heap_results<typename base::result_type>)
            deliver(heap_results_handler<Handler>{std::move(handler)}, executor,
                    std::tuple(std::move(box)), on_the_strand);
        else
            deliver(std::move(handler), executor, std::move(*box), on_the_strand);
    }

    template <class H, class Arguments>
    static void deliver(H handler, const Executor& executor, Arguments&& results,
                        bool on_the_strand)
    {
        if (on_the_strand)
            call_from_executor()(std::move(handler), std::move(results));
        else
            post_handler(std::move(handler), executor, std::move(results));
    }

    // Destroys the supervisor and frees its memory, which the handler may use again.
    Handler release_handler()
    {
        Handler handler(std::move(this->handler_));
        destroy_with(call_allocator(handler), static_cast<Derived*>(this));
        return handler;
    }
};

} // namespace turnstile::inline v0_1::detail
