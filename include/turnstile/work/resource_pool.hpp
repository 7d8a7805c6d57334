// SPDX-License-Identifier: BSL-1.0
// A pool of resources that are expensive to make, such as connections.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/resource_pool_request.hpp>
#include <turnstile/work/resource_lease.hpp>
#include <turnstile/work/resource_pool_options.hpp>

#include <boost/assert/source_location.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A pool of resources that are expensive to make, such as connections. The pool creates a resource
/// if a caller waits that no resource is on its way for, keeps it when the caller has returned it,
/// and closes it when it is broken, too old or idle for too long. `resource_pool_options` and
/// `resource_operations` describe the rules.
///
/// Each operation of the user runs on a strand of its own on top of the pool's executor, never
/// inside a call of the pool, and is cancelled when its limit has passed. Its place is then free at
/// once: an operation that ignores its cancellation keeps the resource, but not the place.
///
/// While the pool has operations that run, waiters with a limit, a failed creation to repeat, or
/// resources with a time at which they are closed, checked or reported, it is outstanding work of
/// its context. Close or destroy it before a `run()` that should return.
///
/// @tparam T The resource. Must be movable.
/// @par Thread safety
/// Any thread may call any function of a `resource_pool`; a `local::resource_pool` is confined to
/// one strand. The destructor of a resource runs on the pool's executor, or on a thread that
/// returns a resource or calls the pool, never under a lock.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Running operations are cancelled, and may end
/// later, so the objects that they use must exist until then. Idle resources are destroyed without
/// the operation `close`; use `async_close` to close them. Leases may outlive the pool. The
/// destructor of a resource must not destroy the pool.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_resource_pool
    : public detail::listening_object<Executor, Threading,
                                      detail::typed_pool_state<T, Executor, Threading, Clock>> {
    using state_type = detail::typed_pool_state<T, Executor, Threading, Clock>;
    using base = detail::listening_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    /// The type of the resources.
    using value_type = T;
    /// The clock of all times.
    using clock_type = Clock;
    /// The handle of an acquired resource.
    using lease_type = resource_lease<T, Threading, Clock>;

    /// The same type of pool for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_resource_pool<T, Other, Threading, Clock>;
    };

    /// Makes a pool, which starts to create the resources of its initial size.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule, or
    /// `operations.create` is null.
    basic_resource_pool(const std::type_identity_t<Executor>& executor,
                        const resource_pool_options& options, resource_operations<T> operations)
        : base(executor, options, std::move(operations))
    {
        this->state_pointer()->open();
    }

    /// Equivalent to the constructor with `context.get_executor()`.
    template <detail::execution_context Context>
    basic_resource_pool(Context& context, const resource_pool_options& options,
                        resource_operations<T> operations)
        : basic_resource_pool(context.get_executor(), options, std::move(operations))
    {
    }

    ~basic_resource_pool() { this->state_pointer()->abandon(); }

    /// Waits for a resource.
    ///
    /// @param where The place that is reported if the lease is held for `leak_threshold`.
    /// @par Completes when
    /// a resource is returned or created for this caller, and every earlier caller has one; or the
    /// creation for this caller has failed.
    /// @par Completion signature
    /// `void(error_code, lease_type)`
    /// @par Errors
    /// The cause of a failed creation: its code, or `errc::timed_out`; a coroutine that awaits with
    /// `use_awaitable` is thrown its exception. `errc::rejected` if `max_waiters` callers wait;
    /// `errc::closed`; `operation_aborted` if the wait was cancelled or the pool destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the pool's.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. A creation continues, and serves the next caller.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs holds nothing: a resource that was
    /// already granted goes to the next caller.
    /// @par Fairness
    /// FIFO.
    template <token_for<lease_type> Token = default_token_t<Executor>>
    auto async_acquire(Token&& token = Token(),
                       boost::source_location where = BOOST_CURRENT_LOCATION)
    {
        return acquire(resource_pool_options::unlimited, std::forward<Token>(token), where);
    }

    /// Waits for a resource, for at most `within`. As `async_acquire(token)`; in addition:
    ///
    /// @par Errors
    /// `errc::timed_out` when the time has passed; or, if the last creation has failed, its cause.
    template <token_for<lease_type> Token = default_token_t<Executor>>
    auto async_acquire(nanoseconds within, Token&& token = Token(),
                       boost::source_location where = BOOST_CURRENT_LOCATION)
    {
        return acquire(within, std::forward<Token>(token), where);
    }

    /// Acquires an idle resource that needs no check, if no caller waits. Returns an empty lease
    /// otherwise; `ec` is `errc::rejected` then, `errc::closed`, or, with `fail_fast`, the cause of
    /// the last failed creation.
    [[nodiscard]] lease_type try_acquire(error_code& ec,
                                         boost::source_location where = BOOST_CURRENT_LOCATION)
    {
        state_type& state = this->state();
        detail::pool_slot* slot = nullptr;
        detail::pool_failure failed;
        const detail::wait_decision decision = state.try_acquire(slot, failed, where);
        ec = failed.code;
        if (slot)
            return lease_type(state, *slot);
        if (!ec)
            ec = decision.is_refused() ? decision.error() : make_error_code(errc::rejected);
        return lease_type();
    }
    /// Equivalent to `try_acquire(ec)`, and ignores `ec`.
    [[nodiscard]] lease_type try_acquire(boost::source_location where = BOOST_CURRENT_LOCATION)
    {
        error_code ignored;
        return try_acquire(ignored, where);
    }

    /// Adds a resource that was made elsewhere. Returns false, and has not moved from `resource`,
    /// if the pool has `max_size` resources or is closed.
    [[nodiscard]] bool try_add(T&& resource)
    {
        const boost::intrusive_ptr<detail::typed_pool_slot<T>> slot(new detail::typed_pool_slot<T>);
        slot->value.emplace(std::move(resource));
        if (this->state().add(*slot))
            return true;
        resource = std::move(*slot->value);
        return false;
    }

    /// Closes the pool, and waits until it is empty. Waiters of `async_acquire` fail with
    /// `errc::closed`, creations are cancelled, idle resources are closed at once, and leased ones
    /// when they are returned.
    ///
    /// @par Completes when
    /// all resources were closed.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// `operation_aborted` if the wait was cancelled or the pool destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the pool's.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait only: the pool stays closed.
    /// @par Cancel safety
    /// A wait consumes nothing. Any number of operations can wait.
    /// @par Fairness
    /// FIFO.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_close(Token&& token = Token())
    {
        return async_close(resource_pool_options::unlimited, std::forward<Token>(token));
    }

    /// Closes the pool as `async_close(token)`, and waits for at most `within`. When the time has
    /// passed, operations that run are cancelled, and their resources destroyed.
    ///
    /// @par Errors
    /// `errc::timed_out` if resources are still leased then; they are closed when they are
    /// returned.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_close(nanoseconds within, Token&& token = Token())
    {
        return detail::start_wait(
            detail::pool_close_request<Executor, state_type>{
                {&this->executor(), this->state_pointer(), within}},
            std::forward<Token>(token));
    }

    /// Closes the pool as `async_close`, and does not wait.
    void close() noexcept { this->state().close(); }
    /// Whether the pool was closed.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }

    /// Changes the maximum size. If it shrinks, idle resources are closed at once, oldest first,
    /// and leased ones when they are returned. If it grows, resources are created for waiters.
    ///
    /// @par Errors
    /// `errc::invalid_argument` if `max_size` is 0 or less than `min_size`; nothing has changed
    /// then.
    void resize(std::size_t max_size, error_code& ec) noexcept
    {
        ec =
            this->state().resize(max_size) ? error_code() : make_error_code(errc::invalid_argument);
    }
    /// Equivalent to `resize(max_size, ec)`; throws `system_error` where that sets `ec`.
    void resize(std::size_t max_size)
    {
        error_code ec;
        resize(max_size, ec);
        detail::throw_if(ec, "resource_pool::resize");
    }
    /// The maximum size.
    [[nodiscard]] std::size_t max_size() const noexcept { return this->state().max_size(); }

    /// Closes all idle resources, for example after the backend has moved.
    void evict_idle() noexcept { this->state().evict_idle(); }

    /// Lets every caller wait: no resource is leased, created or checked until `resume()`.
    /// Resources that are leased may be returned.
    void suspend() noexcept { this->state().suspend(); }
    /// Ends the effect of `suspend()`.
    void resume() noexcept { this->state().resume(); }
    /// Whether the pool is suspended.
    [[nodiscard]] bool is_suspended() const noexcept { return this->state().is_suspended(); }

    /// The code of the last failed creation; not set if a creation has succeeded since.
    [[nodiscard]] error_code last_error() const noexcept { return this->state().last_error(); }
    /// The figures of the pool.
    [[nodiscard]] resource_pool_stats stats() const noexcept { return this->state().stats(); }

private:
    template <class Token>
    auto acquire(nanoseconds within, Token&& token, const boost::source_location& where)
    {
        using base_state = detail::resource_pool_state<Threading, Clock>;
        return detail::start_wait(
            detail::acquire_request<Executor, base_state, lease_type>{
                {&this->executor(), &this->state(), within}, where},
            std::forward<Token>(token));
    }
};

/// The resource pool for any thread and any executor.
template <class T>
class resource_pool : public basic_resource_pool<T> {
public:
    using basic_resource_pool<T>::basic_resource_pool;
};

namespace local {

/// The resource pool for one strand: it needs no atomic operations, no internal lock and no
/// strands.
template <class T>
class resource_pool : public basic_resource_pool<T, asio::any_io_executor, strand_confined> {
public:
    using basic_resource_pool<T, asio::any_io_executor, strand_confined>::basic_resource_pool;
};

} // namespace local
} // namespace turnstile::inline v0_1
