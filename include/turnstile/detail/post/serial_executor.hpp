// SPDX-License-Identifier: BSL-1.0
// A small strand: an executor that runs functions one after the other, on top of the executor of an
// io_context or a thread_pool. The work layer runs each child on one, because a cancellation signal
// must not be emitted while the operation makes progress on another thread.
//
// It differs from asio::strand in three ways. It can be used again for the next child
// (serial_service). It is posted in memory of its own, so that a lack of memory never blocks it.
// And a dispatch on a thread of the context runs the function at once if nothing else is running,
// without queueing it.
//
// A serial_queue is idle, or busy: one of its functions is running, or its drain is posted.
//
// Invariants: at most one thread runs functions of a queue at a time. While functions are queued,
// the queue is busy. Functions are called and destroyed outside the lock.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Inner>
concept serial_inner = std::same_as<Inner, io_executor> || std::same_as<Inner, pool_executor>;

// A queued function.
class serial_node {
public:
    using run_function = void (*)(serial_node&, task_action);

    explicit serial_node(run_function function) noexcept : run_(function) {}
    serial_node(const serial_node&) = delete;
    serial_node& operator=(const serial_node&) = delete;

    // Runs or destroys the function; the node is freed.
    void run(task_action action) { run_(*this, action); }

    serial_node* next = nullptr;

protected:
    ~serial_node() = default;

private:
    run_function run_;
};

template <class Function>
class serial_function final : public serial_node {
    using allocator = cached_allocator<serial_function>;

public:
    template <class F>
    static serial_function& make(F&& f)
    {
        return *make_with<serial_function>(allocator(), [&](void* memory) {
            return new (memory) serial_function(std::forward<F>(f));
        });
    }

private:
    template <class F>
    explicit serial_function(F&& f) : serial_node(&run_or_destroy), function_(std::forward<F>(f))
    {
    }

    static void run_or_destroy(serial_node& node, task_action action)
    {
        auto& self = static_cast<serial_function&>(node);
        Function function(std::move(self.function_));
        destroy_with(allocator(), &self);
        if (action == task_action::invoke)
            function();
    }

    Function function_;
};

class serial_service;

class TURNSTILE_EXPORT serial_queue final : intrusive_task {
public:
    using inner_executor = std::variant<io_executor, pool_executor>;
    using pointer = boost::intrusive_ptr<serial_queue>;

    template <serial_inner Inner>
    serial_queue(serial_service& service, const Inner& inner)
        : intrusive_task(&run_drain), inner_(inner), posting_(inner), context_(&inner.context()),
          service_(&service)
    {
    }
    ~serial_queue();

    template <serial_inner Inner>
    const Inner& inner() const noexcept
    {
        return *std::get_if<Inner>(&inner_);
    }
    asio::execution_context& context() const noexcept { return *context_; }

    // Whether the calling thread is running a function of this queue.
    bool is_current() const noexcept;

    template <class F>
    void dispatch(F&& f)
    {
        using function = std::decay_t<F>;
        if (is_current()) {
            function now(std::forward<F>(f));
            return now();
        }
        if (!may_run_here() || !try_enter())
            return post(std::forward<F>(f));
        const running scope(*this);
        function now(std::forward<F>(f));
        now();
    }

    template <class F>
    void post(F&& f)
    {
        push(serial_function<std::decay_t<F>>::make(std::forward<F>(f)));
    }

    friend void intrusive_ptr_add_ref(serial_queue* queue) noexcept
    {
        queue->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(serial_queue* queue) noexcept
    {
        if (queue->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete queue;
    }

private:
    // The time in which a thread runs functions of a busy queue. At its end the queue is idle, or
    // its drain is posted.
    class TURNSTILE_EXPORT running {
    public:
        explicit running(serial_queue& queue) noexcept;
        running(const running&) = delete;
        running& operator=(const running&) = delete;
        ~running();

    private:
        friend serial_queue;

        pointer queue_;
        running* outer_; // the next one of this thread
    };

    friend serial_service;

    // Fails if the destructor has begun.
    bool try_add_reference() noexcept;
    // Whether the calling thread runs the context.
    bool may_run_here() const noexcept;
    bool try_enter() noexcept;
    void push(serial_node& node) noexcept;
    serial_node* pop() noexcept;
    void leave() noexcept;
    void post_drain() noexcept;
    void drop_all() noexcept;
    void shut_down() noexcept;
    static void run_drain(intrusive_task& task, task_action action);

    static constinit thread_local running* innermost_;

    std::atomic<int> references_{0};
    spin_mutex mutex_;
    bool is_busy_ = false;
    bool is_shut_down_ = false;  // functions are destroyed at once
    bool is_given_back_ = false; // its child has ended while it was busy
    serial_node* first_ = nullptr;
    serial_node* last_ = nullptr;
    inner_executor inner_;
    posting_executor posting_;
    asio::execution_context* context_;
    serial_service* service_; // null after the end of the context
    // The neighbours in the list of the service.
    serial_queue* next_ = nullptr;
    serial_queue* previous_ = nullptr;
};

// The queues of an execution context: all of them, to destroy their functions with the context, and
// the idle ones of ended children, to use them again.
//
// Invariant: an idle queue has no functions, and no child.
class TURNSTILE_EXPORT serial_service : public asio::execution_context::service {
public:
    using key_type = serial_service;
    static asio::execution_context::id id;

    explicit serial_service(asio::execution_context& context);

    template <serial_inner Inner>
    serial_queue::pointer take(const Inner& inner)
    {
        if (serial_queue::pointer queue = take_idle())
            return queue;
        serial_queue::pointer queue(new serial_queue(*this, inner));
        add(*queue);
        return queue;
    }
    // The child of the queue has ended. A busy queue is kept for later when it is idle: the handler
    // of the ended call, which may be running on it, would delay the next call.
    void give_back(serial_queue::pointer queue) noexcept;

private:
    friend serial_queue;

    static constexpr std::size_t max_idle = 256;

    void shutdown() override;
    void keep(serial_queue::pointer queue) noexcept;
    serial_queue::pointer take_idle() noexcept;
    void add(serial_queue& queue) noexcept;
    static void remove(serial_queue& queue) noexcept;
    void unlink(serial_queue& queue) noexcept;
    serial_queue::pointer unlink_first() noexcept;

    spin_mutex mutex_;
    bool is_shut_down_ = false;
    serial_queue* queues_ = nullptr;
    std::vector<serial_queue::pointer> idle_;
};

// The properties of a serial_executor: whether a function may run inside execute(), and the
// outstanding work. An executor that tracks work stores both in one executor of the context, so
// that it is small enough to be stored inside an any_io_executor.
template <serial_inner Inner, bool tracks_work>
class serial_properties {
public:
    serial_properties(const Inner&, bool never_blocks) noexcept : never_blocks_(never_blocks) {}
    bool never_blocks() const noexcept { return never_blocks_; }

private:
    bool never_blocks_;
};
template <serial_inner Inner>
class serial_properties<Inner, true> {
public:
    serial_properties(const Inner& inner, bool never_blocks) noexcept
        : tracked_(asio::require(never_blocks
                                     ? asio::require(inner, asio::execution::blocking.never)
                                     : asio::require(inner, asio::execution::blocking.possibly),
                                 asio::execution::outstanding_work.tracked))
    {
    }
    bool never_blocks() const noexcept
    {
        return asio::query(tracked_, asio::execution::blocking) == asio::execution::blocking.never;
    }

private:
    tracked_t<Inner> tracked_;
};

template <serial_inner Inner, bool tracks_work = false>
class serial_executor {
    using blocking_t = asio::execution::blocking_t;
    using outstanding_work_t = asio::execution::outstanding_work_t;

public:
    explicit serial_executor(serial_queue::pointer queue, bool never_blocks = false) noexcept
        : properties_(queue->inner<Inner>(), never_blocks), queue_(std::move(queue))
    {
    }
    // Asio requires noexcept, which boost::intrusive_ptr does not promise.
    serial_executor(const serial_executor&) noexcept = default;
    serial_executor(serial_executor&&) noexcept = default;
    serial_executor& operator=(const serial_executor&) noexcept = default;
    serial_executor& operator=(serial_executor&&) noexcept = default;
    ~serial_executor() = default;

    const serial_queue::pointer& queue() const noexcept { return queue_; }
    const Inner& get_inner_executor() const noexcept { return queue_->inner<Inner>(); }
    bool running_in_this_thread() const noexcept { return queue_->is_current(); }

    asio::execution_context& query(asio::execution::context_t) const noexcept
    {
        return queue_->context();
    }
    blocking_t query(blocking_t) const noexcept
    {
        return never_blocks() ? blocking_t(asio::execution::blocking.never)
                              : blocking_t(asio::execution::blocking.possibly);
    }
    static constexpr outstanding_work_t query(outstanding_work_t) noexcept
    {
        return tracks_work ? outstanding_work_t(asio::execution::outstanding_work.tracked)
                           : outstanding_work_t(asio::execution::outstanding_work.untracked);
    }
    serial_executor require(blocking_t::never_t) const noexcept
    {
        return serial_executor(queue_, true);
    }
    serial_executor require(blocking_t::possibly_t) const noexcept
    {
        return serial_executor(queue_, false);
    }
    serial_executor<Inner, true> require(outstanding_work_t::tracked_t) const noexcept
    {
        return serial_executor<Inner, true>(queue_, never_blocks());
    }
    serial_executor<Inner, false> require(outstanding_work_t::untracked_t) const noexcept
    {
        return serial_executor<Inner, false>(queue_, never_blocks());
    }

    template <class F>
    void execute(F&& f) const
    {
        if (never_blocks())
            queue_->post(std::forward<F>(f));
        else
            queue_->dispatch(std::forward<F>(f));
    }

    friend bool operator==(const serial_executor& a, const serial_executor& b) noexcept
    {
        return a.queue_ == b.queue_ && a.never_blocks() == b.never_blocks();
    }

private:
    bool never_blocks() const noexcept { return properties_.never_blocks(); }

    serial_properties<Inner, tracks_work> properties_;
    serial_queue::pointer queue_;
};

} // namespace turnstile::inline v0_1::detail
