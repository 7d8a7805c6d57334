// SPDX-License-Identifier: BSL-1.0
// A watched value: writers replace it, readers get the latest one and can wait for a change.
#pragma once

#include <turnstile/channel/detail/watch_request.hpp>
#include <turnstile/channel/detail/watch_state.hpp>
#include <turnstile/channel/shared_value.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// The value of a watch at one moment, and its version. Later changes do not affect it.
template <class T, class Threading = thread_safe>
class watch_snapshot : public shared_value<T, Threading> {
public:
    /// An empty snapshot, with version 0, which no value has.
    watch_snapshot() noexcept = default;

    /// The version, which grows by one with each change.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

private:
    template <class, class, class>
    friend class basic_watch;
    explicit watch_snapshot(typename detail::watch_state<Threading>::snapshot s) noexcept
        : shared_value<T, Threading>(std::move(s.value)), version_(s.version)
    {
    }

    std::uint64_t version_ = 0;
};

/// The latest value of something that changes, for any number of readers. A slow reader skips
/// values that have been replaced, but never misses the last one.
///
/// Readers share the value instead of copying it, and writers never wait for readers.
///
/// @par Fairness
/// A change grants all waiters.
/// @par Thread safety
/// With `thread_safe`, every member function may be called on any thread. With `strand_confined`,
/// all calls must come from one strand. No function runs a completion handler inside the call,
/// except through the handler's immediate executor.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Snapshots stay valid.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_watch : public detail::io_object<Executor, Threading, detail::watch_state<Threading>> {
    using state_type = detail::watch_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using value_type = T;
    using typename base::executor_type;

    /// The result of reading and of waiting.
    using snapshot_type = watch_snapshot<T, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_watch<T, Other, Threading>;
    };

    /// Constructs a watch with the value `T(args...)` and version 1.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_watch(const Executor& executor, Args&&... args)
        : base(executor, detail::make_node<T, Threading>(std::forward<Args>(args)...))
    {
    }

    /// The same with the executor of an execution context.
    template <detail::execution_context Context, class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_watch(Context& context, Args&&... args)
        : basic_watch(context.get_executor(), std::forward<Args>(args)...)
    {
    }

    /// Waits for a version other than `seen`.
    ///
    /// @param seen The version that the caller has seen; 0 if it has seen none.
    /// @par Completes when
    /// The version differs from `seen`; at once if it already does.
    /// @par Completion signature
    /// `void(error_code, snapshot_type)`: the value that is the latest when the handler is about to
    /// run.
    /// @par Errors
    /// `errc::closed` if the watch is closed and `seen` is its last version; `operation_aborted` if
    /// the wait is cancelled or the watch is destroyed.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the watch.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing.
    /// @par Fairness
    /// All waits are granted at the same time.
    template <token_for<snapshot_type> Token = default_token_t<Executor>>
    auto async_wait_changed(std::uint64_t seen, Token&& token = Token())
    {
        return detail::start_wait(
            detail::watch_changed_request<basic_watch>{{&this->state(), &this->executor()}, seen},
            std::forward<Token>(token));
    }

    /// Waits until the value satisfies `predicate(const T&)`.
    ///
    /// The predicate tests the current value first, then each later value, except values that are
    /// replaced before it is called. It is called where the completion handler would run; with
    /// `strand_confined`, and for an executor that cannot be posted to, on the executor of the
    /// watch. It is never called under a lock or inside a function that changes the value, and
    /// inside this function only through the handler's immediate executor.
    ///
    /// @par Completes when
    /// The predicate returns true.
    /// @par Completion signature
    /// `void(error_code, snapshot_type)`: the value that the predicate accepted.
    /// @par Errors
    /// `errc::closed` if the watch is closed and the predicate rejects its last value;
    /// `errc::predicate_failed` if the predicate throws; `operation_aborted` if the wait is
    /// cancelled or the watch is destroyed. A coroutine that awaits with `use_awaitable` receives
    /// the exception of the predicate itself.
    /// @par Executor
    /// The handler's associated executor; by default the executor of the watch.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// A wait consumes nothing.
    /// @par Fairness
    /// Each change causes a test by every waiter.
    template <std::predicate<const T&> Predicate,
              token_for<snapshot_type> Token = default_token_t<Executor>>
    auto async_wait_for(Predicate predicate, Token&& token = Token())
    {
        return detail::start_wait(detail::watch_predicate_request<basic_watch, Predicate>(
                                      this->executor(), this->state(), std::move(predicate)),
                                  std::forward<Token>(token));
    }

    /// Returns the latest value.
    [[nodiscard]] snapshot_type get() const noexcept { return make_snapshot(this->state().load()); }

    /// Returns the latest version: a hint.
    [[nodiscard]] std::uint64_t version() const noexcept { return this->state().version(); }

    /// Replaces the value, grants all waiters, and returns the new version.
    ///
    /// @param value A value, the argument of one, or a `shared_value` such as an earlier snapshot.
    /// A `shared_value` is stored without a copy, and storing it cannot throw. If the construction
    /// of a value throws, nothing changes.
    /// @par Errors
    /// `errc::closed` if the watch is closed; `errc::invalid_argument` if `value` is an empty
    /// `shared_value`. The returned version is 0 then.
    template <detail::shareable<T, Threading> U = T>
    std::uint64_t set(U&& value, error_code& ec)
    {
        auto share = shared_value<T, Threading>::of(std::forward<U>(value));
        if (!share) {
            ec = errc::invalid_argument;
            return 0;
        }
        // Afterwards `share` holds the replaced value, which is destroyed without the lock.
        return version_or_closed(this->state().store(share.node_), ec);
    }

    /// Like the overload with `error_code&`, but throws `system_error`.
    template <detail::shareable<T, Threading> U = T>
    std::uint64_t set(U&& value)
    {
        error_code ec;
        const std::uint64_t version = set(std::forward<U>(value), ec);
        detail::throw_if(ec, "watch::set");
        return version;
    }

    /// Changes the value: calls `change(T&)` with a copy, which it modifies, and replaces the value
    /// by that copy. `change` returns nothing. If another writer has replaced the value in
    /// the meantime, `change` is called again with a copy of the newer value, so no change is lost.
    /// Returns the new version.
    ///
    /// If `change` or the copy throws, nothing changes.
    /// @par Errors
    /// `errc::closed` if the watch is closed. The returned version is 0 then.
    template <std::invocable<T&> Change>
        requires(std::copy_constructible<T>)
    std::uint64_t update(Change change, error_code& ec)
    {
        static_assert(std::is_void_v<std::invoke_result_t<Change&, T&>>,
                      "watch::update changes the value in place: `change` takes a T& and returns "
                      "nothing. Use set() to replace the value.");
        for (;;) {
            const snapshot_type current = get();
            auto node = detail::make_node<T, Threading>(*current);
            change(static_cast<detail::value_node<T, Threading>&>(*node).value);
            const std::uint64_t version = this->state().store_if(current.version(), node);
            if (version != 0 || is_closed())
                return version_or_closed(version, ec);
        }
    }

    /// Like the overload with `error_code&`, but throws `system_error`.
    template <std::invocable<T&> Change>
        requires(std::copy_constructible<T>)
    std::uint64_t update(Change change)
    {
        error_code ec;
        const std::uint64_t version = update(std::move(change), ec);
        detail::throw_if(ec, "watch::update");
        return version;
    }

    /// Closes the watch: the value cannot be changed any further. A reader that has not seen the
    /// last value still receives it; every other wait fails with `errc::closed`.
    void close() noexcept { this->state().close(); }

    /// Returns whether the watch is closed.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }

    /// The number of waiters: a hint. An `async_wait_for` is not counted while its predicate runs.
    using base::waiting;

private:
    friend detail::watch_changed_request<basic_watch>;
    template <class, class>
    friend class detail::watch_predicate_request;

    static snapshot_type make_snapshot(typename state_type::snapshot&& s) noexcept
    {
        return snapshot_type(std::move(s));
    }
    static std::uint64_t version_or_closed(std::uint64_t version, error_code& ec) noexcept
    {
        ec = version != 0 ? error_code() : make_error_code(errc::closed);
        return version;
    }
};

/// The usual watch: for any thread and any executor.
template <class T>
using watch = basic_watch<T>;

namespace local {

/// A watch for one strand: no atomics, no locks. Its snapshots must stay on the strand.
template <class T>
using watch = basic_watch<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
