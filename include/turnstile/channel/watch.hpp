// SPDX-License-Identifier: BSL-1.0
// A watched value: the latest one counts, and whoever wants to know waits for the next.
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
#include <utility>

namespace turnstile::inline v0_1 {

/// A value as it was at one moment, and its version. It stays as it is, whatever follows.
template <class T, class Threading = thread_safe>
class watch_snapshot : public shared_value<T, Threading> {
public:
    /// Empty, with version 0, which no value has.
    watch_snapshot() noexcept = default;
    explicit watch_snapshot(typename detail::watch_state<Threading>::latest l) noexcept
        : shared_value<T, Threading>(std::move(l.value)), version_(l.version)
    {
    }

    /// Grows by one with each change.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

private:
    std::uint64_t version_ = 0;
};

/// The latest value of something that changes, for any number of readers. A reader that is
/// slow skips what has been replaced meanwhile, but never misses the last value.
///
/// Readers share the value, so that it is not copied for any of them, and writers never
/// wait for readers.
///
/// Fairness: all who wait go with the next change.
/// Destruction: every waiter completes with `operation_aborted`. Snapshots stay valid.
template <class T, class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_watch : public detail::io_object<Executor, Threading, detail::watch_state<Threading>> {
    using state_type = detail::watch_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;
    using value_share = shared_value<T, Threading>;

public:
    using value_type = T;
    using typename base::executor_type;

    /// What reading and waiting give.
    using snapshot_type = watch_snapshot<T, Threading>;

    template <class Other>
    struct rebind_executor {
        using other = basic_watch<T, Other, Threading>;
    };

    /// A watch over a value made from `args`, with version 1.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_watch(const Executor& executor, Args&&... args)
        : base(executor, detail::make_node<T, Threading>(std::forward<Args>(args)...))
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context, class... Args>
        requires std::constructible_from<T, Args...>
    explicit basic_watch(Context& context, Args&&... args)
        : basic_watch(context.get_executor(), std::forward<Args>(args)...)
    {
    }

    /// Waits until the version is another than `seen`.
    ///
    /// Completes when: there is a version the caller has not seen, now or later. With 0 that
    /// is so at once.
    /// Signature: `void(error_code, snapshot_type)`: the latest value at the time of delivery.
    /// Errors: `errc::closed` if the watch is closed and `seen` is its last version;
    /// `operation_aborted` if cancelled, or the watch was destroyed.
    /// Executor: the handler's associated executor, by default the watch's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: all go at once. Thread safety: as the policy says.
    template <token_for<snapshot_type> Token = default_token_t<Executor>>
    auto async_wait_changed(std::uint64_t seen, Token&& token = Token())
    {
        return detail::start_wait(
            detail::change_request<basic_watch>{&this->executor(), &this->state(), seen},
            std::forward<Token>(token));
    }

    /// Waits until the value satisfies `predicate(const T&)`.
    ///
    /// The predicate is called where the handler would run (with `strand_confined`, or where that
    /// cannot be posted to, on the watch's executor); never inside a function that changes the
    /// value, inside this one only through the handler's immediate executor, and never under a
    /// lock. It gets the value there is at first, then each later one, except those that were
    /// replaced before it came to them.
    ///
    /// Completes when: the predicate holds.
    /// Signature: `void(error_code, snapshot_type)`: the value that satisfied it.
    /// Errors: `errc::closed` if the watch is closed, and its last value does not satisfy it;
    /// `errc::predicate_failed` if the predicate throws, where a coroutine that awaits with
    /// `use_awaitable` is thrown that exception instead; `operation_aborted` if cancelled, or the
    /// watch was destroyed.
    /// Executor: the handler's associated executor, by default the watch's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: waiting consumes nothing, so there is nothing to lose.
    /// Fairness: all are woken by each change. Thread safety: as the policy says.
    template <std::predicate<const T&> Predicate,
              token_for<snapshot_type> Token = default_token_t<Executor>>
    auto async_wait_for(Predicate predicate, Token&& token = Token())
    {
        return detail::start_wait(detail::search_request<basic_watch, Predicate>(
                                      this->executor(), this->state(), std::move(predicate)),
                                  std::forward<Token>(token));
    }

    /// The latest value. Thread safety: as the policy says.
    [[nodiscard]] snapshot_type get() const noexcept { return snapshot_type(this->state().load()); }

    /// The latest version: a hint, outdated as soon as it is returned.
    [[nodiscard]] std::uint64_t version() const noexcept { return this->state().version(); }

    /// Replaces the value, and lets all who wait go; returns the new version. No handler runs
    /// inside this call. If making the value throws, nothing changes. One that is made already,
    /// such as an earlier snapshot, is not copied, and nothing can fail.
    /// Errors: `errc::closed`; `errc::invalid_argument` if it is an empty `shared_value`. Thread
    /// safety: as the policy says.
    template <detail::shareable<T, Threading> U = T>
    std::uint64_t set(U&& value, error_code& ec)
    {
        auto share = value_share::of(std::forward<U>(value));
        if (!share) {
            ec = errc::invalid_argument;
            return 0;
        }
        // What it replaces is then in its place, and goes without the lock.
        return checked(this->state().store(share.node_), ec);
    }

    /// The same, throwing `system_error`.
    template <detail::shareable<T, Threading> U = T>
    std::uint64_t set(U&& value)
    {
        error_code ec;
        const std::uint64_t version = set(std::forward<U>(value), ec);
        detail::throw_if(ec, "watch::set");
        return version;
    }

    /// Changes the value: `change(T&)` is called with a copy of it, which then takes its
    /// place. If somebody else was faster, once more, with a copy of the newer value; so no
    /// change is lost. If `change` or the copy throws, nothing changes.
    /// Errors: `errc::closed`. Thread safety: as the policy says.
    template <std::invocable<T&> Change>
        requires(std::copy_constructible<T>)
    std::uint64_t update(Change change, error_code& ec)
    {
        for (;;) {
            const snapshot_type now = get();
            auto node = detail::make_node<T, Threading>(*now);
            change(static_cast<detail::value_node<T, Threading>&>(*node).value);
            const std::uint64_t version = this->state().store_if(now.version(), node);
            if (version != 0 || is_closed())
                return checked(version, ec);
        }
    }

    /// The same, throwing `system_error`.
    template <std::invocable<T&> Change>
        requires(std::copy_constructible<T>)
    std::uint64_t update(Change change)
    {
        error_code ec;
        const std::uint64_t version = update(std::move(change), ec);
        detail::throw_if(ec, "watch::update");
        return version;
    }

    /// Ends the changes: readers still get the last value, then `errc::closed`. Thread safety:
    /// as the policy says.
    void close() noexcept { this->state().close(); }

    /// Whether it is closed.
    [[nodiscard]] bool is_closed() const noexcept { return this->state().is_closed(); }

private:
    static std::uint64_t checked(std::uint64_t version, error_code& ec) noexcept
    {
        ec = version != 0 ? error_code() : make_error_code(errc::closed);
        return version;
    }
};

/// The usual watch: any thread, any executor.
template <class T>
using watch = basic_watch<T>;

namespace local {

/// A watch for one strand: no atomics, no locks. Its snapshots must stay there, too.
template <class T>
using watch = basic_watch<T, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
