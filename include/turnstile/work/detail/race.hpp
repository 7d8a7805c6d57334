// SPDX-License-Identifier: BSL-1.0
// The common part of async_select and async_all: a race of operations, its branches, which run at
// the same time on one strand. The branches are a tuple of operations, or a vector of one type;
// select_rule and all_rule decide when the race is over and make its result.
//
// A race is one block of memory: the handler of the caller, the strand, and the operations with
// their results. Every outstanding part of it holds a reference (race_ptr): the handlers of its
// branches, the function that starts them, a cancellation by the caller. The party that drops the
// last reference frees the race, and then calls the handler.
//
// Invariants: all members change on the strand. The handler is called once, after all started
// branches have ended; or it is destroyed if a branch was dropped, because its execution context is
// destroyed.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/detail/call/call_cancellation.hpp>
#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/call/nothrow_results.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/detail/race_branches.hpp>
#include <turnstile/work/multiple_errors.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Race>
class race_ptr {
public:
    explicit race_ptr(Race& race) noexcept : race_(&race) { race.add_reference(); }
    race_ptr(Race& race, std::adopt_lock_t) noexcept : race_(&race) {}
    race_ptr(const race_ptr& other) noexcept : race_(other.race_)
    {
        if (race_)
            race_->add_reference();
    }
    race_ptr(race_ptr&& other) noexcept : race_(std::exchange(other.race_, nullptr)) {}
    race_ptr& operator=(const race_ptr&) = delete;
    ~race_ptr()
    {
        try {
            leave(false);
        } catch (...) { // there is no memory to post the handler
        }
    }

    Race* operator->() const noexcept { return race_; }
    Race& operator*() const noexcept { return *race_; }

    // Drops the reference. The last one calls the handler: directly if it is on the strand, and
    // otherwise by a post, because this may be inside the initiating function.
    void leave(bool on_the_strand)
    {
        Race* const race = std::exchange(race_, nullptr);
        if (race && race->drop_reference())
            race->conclude(on_the_strand);
    }

private:
    Race* race_;
};

template <class Handler, class Executor, class Branches, class Rule>
class race final : call_cancellation::target {
public:
    using pointer = race_ptr<race>;
    using allocator_type = asio::associated_allocator_t<Handler, cached_allocator<void>>;
    using result_type = typename Rule::result_type;

    template <class... Ops>
    static void run(Handler handler, const Executor& executor, Rule rule, Ops&&... ops)
    {
        const allocator_type allocator =
            asio::get_associated_allocator(handler, cached_allocator<void>());
        race* const self = make_with<race>(allocator, [&](void* memory) {
            return new (memory)
                race(std::move(handler), executor, std::move(rule), std::forward<Ops>(ops)...);
        });
        pointer starter(*self, std::adopt_lock);
        self->relay_ = call_cancellation::connect(self->handler_, *self);
        const auto strand = self->lease_.executor();
        asio::dispatch(
            strand, asio::bind_allocator(self->get_allocator(), [p = std::move(starter)]() mutable {
                p->start(p);
                p.leave(false);
            }));
    }

    ~race() = default;

    // The interface of a parent; see child_operation.hpp.
    const strand_lease<Executor>& lease() const noexcept { return lease_; }
    allocator_type get_allocator() const noexcept
    {
        return asio::get_associated_allocator(handler_, cached_allocator<void>());
    }
    template <class Child>
    void drop(Child&) noexcept
    {
        if (is_dropped_.exchange(true, std::memory_order_relaxed))
            return;
        try {
            if (try_hold())
                accept(asio::cancellation_type::terminal); // the other branches are not needed
        } catch (...) {                                    // they end by themselves
        }
    }
    template <class Signature>
    friend void complete_child(pointer self, child_operation<Signature>& child)
    {
        self->ended(static_cast<race_child<Signature>&>(child));
        const bool outside_start = !self->is_starting_;
        self.leave(outside_start);
    }

    void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    bool drop_reference() noexcept
    {
        return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

    // No other thread has a reference.
    void conclude(bool on_the_strand)
    {
        if (relay_)
            relay_->disconnect();
        if (is_dropped_.load(std::memory_order_relaxed) || !has_started_) {
            [[maybe_unused]] const Handler dropped = release_handler();
            return;
        }
        nothrow_results<std::tuple<std::exception_ptr, result_type>> result;
        try {
            make_result(result);
        } catch (...) { // a default constructor has thrown: there is no value to pass
            [[maybe_unused]] const Handler dropped = release_handler();
            throw;
        }
        const Executor executor = lease_executor_;
        Handler handler = release_handler();
        if constexpr (needs_heap_results<std::tuple<std::exception_ptr, result_type>>)
            deliver(heap_results_handler<Handler>{std::move(handler)}, executor,
                    std::tuple(std::move(result)), on_the_strand);
        else
            deliver(std::move(handler), executor, std::move(*result), on_the_strand);
    }

private:
    template <class... Ops>
    race(Handler&& handler, const Executor& executor, Rule&& rule, Ops&&... ops)
        : handler_(std::move(handler)), lease_executor_(executor), lease_(executor),
          rule_(std::move(rule)), branches_(std::forward<Ops>(ops)...)
    {
    }

    void start(const pointer& self)
    {
        is_starting_ = true;
        has_started_ = true;
        auto order = branches_.indices();
        std::iota(order.begin(), order.end(), std::size_t(0));
        if (rule_.is_fair())
            shuffle(order);
        for (const std::size_t index : order) {
            if (is_over_ || is_cancelled())
                break;
            branches_.visit(index, [&](auto& branch) { branch.start(self); });
        }
        is_starting_ = false;
        // An initiating function that has ended or cancelled the race was not cancelled itself.
        if (is_over_ || is_cancelled())
            cancel_running(is_over_ ? asio::cancellation_type::terminal : cancelled_);
    }

    template <class Order>
    static void shuffle(Order& order)
    {
        random_source random(random_seed());
        for (std::size_t n = order.size(); n > 1; --n) {
            const auto last = static_cast<std::int64_t>(n - 1);
            std::swap(order[n - 1], order[static_cast<std::size_t>(random.between(0, last))]);
        }
    }

    template <class Signature>
    void ended(race_child<Signature>& branch)
    {
        const std::size_t index = branch.index();
        const failure failed = branch.failed();
        const bool ends_the_race = failed ? rule_.failed(index) : rule_.succeeded(index);
        if (failed && !(is_over_ && failed.is_cancelled()))
            keep(failed);
        if (ends_the_race && !is_over_) {
            is_over_ = true;
            cancel_running(asio::cancellation_type::terminal);
        }
    }

    void keep(const failure& failed) noexcept
    {
        try {
            errors_.push_back(exception_of(failed));
        } catch (...) {
            if (!first_error_)
                first_error_ = std::current_exception();
        }
    }

    bool is_cancelled() const noexcept { return cancelled_ != asio::cancellation_type::none; }
    void cancel_running(asio::cancellation_type_t type)
    {
        branches_.for_each([&](auto& branch) { branch.cancel(type); });
    }

    void make_result(nothrow_results<std::tuple<std::exception_ptr, result_type>>& result)
    {
        std::exception_ptr error;
        try {
            if (rule_.has_won(branches_)) {
                result.emplace(std::exception_ptr(), rule_.take(branches_));
                return;
            }
            if (is_cancelled())
                error = std::make_exception_ptr(system_error(asio::error::operation_aborted));
            else if (branches_.size() == 0)
                error = std::make_exception_ptr(system_error(
                    make_error_code(errc::invalid_argument), "select, all: no operations"));
            else
                error = first_error_ ? first_error_ : combined_error(std::move(errors_));
        } catch (...) {
            error = std::current_exception();
        }
        result.emplace(std::move(error), Rule::no_value());
    }

    // Destroys the race and frees its memory, which the handler may use again.
    Handler release_handler()
    {
        const allocator_type allocator = get_allocator();
        Handler handler(std::move(handler_));
        destroy_with(allocator, this);
        return handler;
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

    // The caller cancels.
    bool try_hold() noexcept override
    {
        int now = references_.load(std::memory_order_relaxed);
        while (now != 0 &&
               !references_.compare_exchange_weak(now, now + 1, std::memory_order_relaxed))
            continue;
        return now != 0;
    }
    void accept(asio::cancellation_type_t type) override
    {
        const auto strand = lease_.executor();
        asio::dispatch(strand,
                       asio::bind_allocator(get_allocator(),
                                            [p = pointer(*this, std::adopt_lock), type]() mutable {
                                                cancel(std::move(p), type);
                                            }));
    }
    static void cancel(pointer self, asio::cancellation_type_t type)
    {
        race& r = *self;
        if (!r.rule_.has_winner()) {
            r.cancelled_ |= type;
            r.cancel_running(type);
        }
        self.leave(false);
    }

    Handler handler_; // the first member, and so destroyed last: it may own the execution context
    Executor lease_executor_;
    strand_lease<Executor> lease_;
    std::shared_ptr<call_cancellation> relay_;
    std::atomic<int> references_{1};
    std::atomic<bool> is_dropped_{false};
    bool has_started_ = false;
    bool is_starting_ = false;
    bool is_over_ = false; // the result is decided; branches that still run are cancelled
    asio::cancellation_type_t cancelled_ = asio::cancellation_type::none; // by the caller
    Rule rule_;
    std::vector<std::exception_ptr> errors_;
    std::exception_ptr first_error_; // if there is no memory for errors_
    Branches branches_;
};

template <class Branches, class Handler, class Executor, class Rule, class... Ops>
void start_race(Handler&& handler, const Executor& otherwise, Rule rule, Ops&&... ops);

// Starts a race for a completion handler. `Executor` is no_executor, or the executor for handlers
// without one.
template <class Executor, class Branches, class Rule>
struct initiate_race {
    using executor_type = Executor;

    Executor executor;
    Rule rule;

    executor_type get_executor() const noexcept { return executor; }

    template <class Handler, class... Ops>
    void operator()(Handler&& handler, Ops&&... ops)
    {
        start_race<Branches>(std::forward<Handler>(handler), executor, std::move(rule),
                             std::forward<Ops>(ops)...);
    }
};
template <class Branches, class Rule>
struct initiate_race<no_executor, Branches, Rule> {
    no_executor executor;
    Rule rule;

    template <class Handler, class... Ops>
    void operator()(Handler&& handler, Ops&&... ops)
    {
        start_race<Branches>(std::forward<Handler>(handler), executor, std::move(rule),
                             std::forward<Ops>(ops)...);
    }
};

template <class Branches, class Handler, class Executor, class Rule, class... Ops>
void start_race(Handler&& handler, const Executor& otherwise, Rule rule, Ops&&... ops)
{
    using handler_type = std::decay_t<Handler>;
    if constexpr (needs_executor<handler_type, Executor>) {
        static_assert(is_never<handler_type>,
                      "The completion handler has no associated executor. Pass an executor as the "
                      "first argument, or use bind_executor.");
    } else {
        const auto executor = executor_for(handler, otherwise);
        using executor_type = std::remove_const_t<decltype(executor)>;
        race<handler_type, executor_type, Branches, Rule>::run(
            handler_type(std::forward<Handler>(handler)), executor, std::move(rule),
            std::forward<Ops>(ops)...);
    }
}

} // namespace turnstile::inline v0_1::detail
