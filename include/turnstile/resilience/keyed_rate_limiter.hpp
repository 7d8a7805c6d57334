// SPDX-License-Identifier: BSL-1.0
// A rate limiter for each key (a user, an address), which forgets idle keys.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/bandwidth.hpp>
#include <turnstile/resilience/detail/coroutine_call.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_shard.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>
#include <turnstile/resilience/gcra.hpp>
#include <turnstile/resilience/keyed_rate_limiter_options.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace turnstile::inline v0_1 {

/// A token bucket for each key, all of the same bandwidth; see `basic_rate_limiter`.
///
/// An idle key, one whose bucket is full and to which no operation refers, behaves like a key that
/// was never seen. The limiter forgets it: each new key makes the limiter examine a few places of
/// its table. Keys are divided into 16 shards, each with a lock and a timer (one shard if
/// `strand_confined`).
///
/// @tparam Key Copyable. Keys are copied, hashed, compared and destroyed without a lock, so that
/// code may use the limiter. It may also throw; then nothing is changed.
/// @tparam Hash, Equal May be called by several threads at the same time.
///
/// @par Fairness
/// Strict FIFO for each key; keys do not wait for each other.
///
/// @par Thread safety
/// With `thread_safe`, any thread may call any function at any time. With `strand_confined`, all
/// calls come from one strand.
///
/// @par Destruction
/// Every waiter completes with `operation_aborted`. No listener is called afterwards.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_keyed_rate_limiter {
public:
    using key_type = Key;
    using executor_type = Executor;
    using threading_policy = Threading;
    using clock_type = Clock;
    using event_type = keyed_rate_limiter_event<Key>;

    template <class Other>
    struct rebind_executor {
        using other = basic_keyed_rate_limiter<Key, Hash, Equal, Other, Threading, Clock>;
    };

    /// Constructs a limiter for any number of keys.
    ///
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if the bandwidth breaks a rule of
    /// `bandwidth`. The text names the member, as in "keyed_rate_limiter: burst must be at least
    /// 1".
    explicit basic_keyed_rate_limiter(const Executor& executor, const bandwidth& limit,
                                      const keyed_rate_limiter_options& options = {},
                                      const Hash& hash = Hash(), const Equal& equal = Equal())
        : basic_keyed_rate_limiter(executor, checked(limit), options, hash, equal,
                                   std::make_index_sequence<shard_count>())
    {
    }

    /// Constructs a limiter with the executor of an execution context.
    template <detail::execution_context Context>
    explicit basic_keyed_rate_limiter(Context& context, const bandwidth& limit,
                                      const keyed_rate_limiter_options& options = {},
                                      const Hash& hash = Hash(), const Equal& equal = Equal())
        : basic_keyed_rate_limiter(context.get_executor(), limit, options, hash, equal)
    {
    }

    basic_keyed_rate_limiter(const basic_keyed_rate_limiter&) = delete;
    basic_keyed_rate_limiter& operator=(const basic_keyed_rate_limiter&) = delete;
    ~basic_keyed_rate_limiter() { listeners_->close(); }

    /// The executor given at construction.
    executor_type get_executor() const noexcept { return executor_; }

    /// Takes n permits of the key's bucket if they are available and no operation waits for the
    /// key. Never waits.
    ///
    /// Throws `bad_alloc` if there is no memory for a new key, and the exceptions of copying,
    /// hashing and comparing keys.
    [[nodiscard]] bool try_acquire(const Key& key, std::uint64_t n = 1)
    {
        return try_now(key, n).decision.is_granted();
    }

    /// Equivalent to `try_acquire(key, n)`, and reports when to try again.
    ///
    /// @param retry_after Zero on success; the maximum if n permits can never be granted (n is 0 or
    /// larger than the burst).
    [[nodiscard]] bool try_acquire(const Key& key, std::uint64_t n, nanoseconds& retry_after)
    {
        const attempt result = try_now(key, n);
        retry_after = result.retry_after;
        return result.decision.is_granted();
    }

    /// Equivalent to `try_acquire(key, n)`, and reports the reason of a failure.
    ///
    /// @par Errors
    /// `errc::rate_limited` if too few permits are available or operations wait for the key;
    /// `errc::too_large` if n is larger than the burst; `errc::invalid_argument` if n is 0.
    [[nodiscard]] bool try_acquire(const Key& key, std::uint64_t n, error_code& ec)
    {
        const attempt result = try_now(key, n);
        ec = result.decision.error();
        return result.decision.is_granted();
    }

    /// Waits for n permits of the key's bucket, all at once. The key is remembered for as long as
    /// the operation exists.
    ///
    /// The function itself throws `bad_alloc` if there is no memory for a new key, and the
    /// exceptions of copying, hashing and comparing keys.
    ///
    /// @par Completes when
    /// n permits are available and all earlier requests for the key have been served.
    /// @par Completion signature
    /// `void(error_code)`
    /// @par Errors
    /// - `operation_aborted` if the operation is cancelled or the limiter is destroyed
    /// - `errc::too_large` if n is larger than the burst, at once or after `set_limits`
    /// - `errc::rejected` if `max_waiters` operations wait for the key, if the sum of all requests
    ///   waiting for it is too large to be counted, or if there is no memory for a timer
    /// - `errc::invalid_argument` if n is 0
    ///
    /// A coroutine is thrown all but the first as a `rejection`, which says when to try again.
    /// @par Executor
    /// The handler's associated executor, by default that of the limiter.
    /// @par Per-operation cancellation
    /// Terminal, partial and total.
    /// @par Cancel safety
    /// An operation that is cancelled before its handler runs has used no permits, and the waiters
    /// behind it move up. A coroutine whose cancellation slot is connected always suspends.
    /// @par Fairness
    /// FIFO for each key.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request(*this, key, n, nanoseconds::max()),
                                  std::forward<Token>(token));
    }

    /// Waits for n permits if that takes no longer than `within`; otherwise completes at once with
    /// `errc::rate_limited`. Apart from that, equivalent to `async_acquire(key, n, token)`.
    ///
    /// An operation that waits fails with `errc::rate_limited` only after a change of the limit.
    /// `time_until` says when to try again.
    ///
    /// @param within A negative duration counts as zero.
    template <class Rep, class Period, token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, std::uint64_t n, std::chrono::duration<Rep, Period> within,
                       Token&& token = Token())
    {
        return detail::start_wait(request(*this, key, n, detail::at_least_zero(within)),
                                  std::forward<Token>(token));
    }

    /// Equivalent to `async_acquire(key, 1, token)`.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, Token&& token = Token())
    {
        return async_acquire(key, 1, std::forward<Token>(token));
    }

    /// Waits for one permit of the key's bucket, then runs an operation; see
    /// `basic_rate_limiter::async_call`.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(const Key& key, Op&& op, Token&& token = Token())
    {
        return detail::limited_call(request(*this, key, 1, nanoseconds::max()),
                                    std::forward<Op>(op), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(const Key&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The limiter for one key, as a stage of a pipeline. Must not outlive the limiter.
    class stage_type {
    public:
        using executor_type = Executor;

        executor_type get_executor() const noexcept { return limiter_->get_executor(); }

        /// Calls `async_call` of the limiter with the key of the stage.
        template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        auto async_call(Op&& op, Token&& token = Token()) const
        {
            return limiter_->async_call(key_, std::forward<Op>(op), std::forward<Token>(token));
        }
        template <class Op, class... Rest>
            requires detail::mistaken_operation<Op, Rest...>
        auto async_call(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

    private:
        friend basic_keyed_rate_limiter;
        stage_type(basic_keyed_rate_limiter& limiter, const Key& key)
            : limiter_(&limiter), key_(key)
        {
        }

        basic_keyed_rate_limiter* limiter_;
        Key key_;
    };
    /// A stage of a pipeline that takes its permits from the bucket of `key`.
    [[nodiscard]] stage_type stage_for(const Key& key) { return stage_type(*this, key); }

    /// The time that a request for n permits would wait: zero if it need not wait, the maximum if
    /// it can never be granted. Throws the exceptions of hashing and comparing keys.
    [[nodiscard]] nanoseconds time_until(const Key& key, std::uint64_t n = 1) const
    {
        const std::size_t h = hash(key);
        return shard_of(h).time_until(key, h, n);
    }

    /// Changes the bandwidth of all keys, as `basic_rate_limiter::set_limits` does. Takes time in
    /// proportion to the number of keys.
    ///
    /// @par Errors
    /// `errc::invalid_argument`, as in the constructor; nothing is changed. The overload without
    /// `ec` throws `system_error`.
    void set_limits(const bandwidth& limit, error_code& ec) noexcept
    {
        ec = gcra::valid(limit) ? error_code() : make_error_code(errc::invalid_argument);
        if (ec)
            return;
        const std::shared_ptr<listeners_type> listeners = listeners_;
        for (auto& shard : shards_)
            shard->set_limits(limit);
        listeners->dispatch(); // a listener may destroy the limiter
    }
    void set_limits(const bandwidth& limit)
    {
        error_code ec;
        set_limits(checked(limit), ec);
    }

    /// The number of keys that the limiter remembers, including idle keys not yet forgotten.
    [[nodiscard]] std::size_t size() const noexcept
    {
        std::size_t sum = 0;
        for (const auto& shard : shards_)
            sum += shard->size();
        return sum;
    }

    /// Forgets all idle keys; returns their number.
    std::size_t purge() noexcept
    {
        std::size_t sum = 0;
        for (auto& shard : shards_)
            sum += shard->purge();
        return sum;
    }

    /// The number of operations that wait, for all keys together: a hint, outdated as soon as it is
    /// returned.
    [[nodiscard]] std::size_t waiting() const noexcept
    {
        std::size_t sum = 0;
        for (const auto& shard : shards_)
            sum += shard->waiting();
        return sum;
    }

    /// The counters since the construction, for all keys together.
    [[nodiscard]] keyed_rate_limiter_stats stats() const noexcept
    {
        keyed_rate_limiter_stats sum;
        for (const auto& shard : shards_) {
            const keyed_rate_limiter_stats s = shard->stats();
            sum.granted += s.granted;
            sum.rejected += s.rejected;
            sum.waited += s.waited;
            sum.cancelled += s.cancelled;
            sum.waiting += s.waiting;
        }
        return sum;
    }

    /// Adds a function that is called after each rejection.
    ///
    /// Rejections are reported one at a time, also rejections of different keys, on the thread that
    /// caused the rejection or on one that is already dispatching events; never under a lock. The
    /// listener may use the limiter. It may also destroy it, unless an initiating function has
    /// caused the rejection. Its exceptions are ignored. If listeners are slower than rejections
    /// come, some events are dropped: one dispatching thread delivers at most 4096 events that
    /// other calls add in the meantime.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return listeners_->add([f = std::move(listener)](const auto& rejected) {
            f(event_type{rejected.entry->key, rejected.code, rejected.permits,
                         rejected.retry_after});
        });
    }
    /// Removes a listener; may be called by a listener. Returns false if `id` is not registered.
    bool remove_listener(listener_id id) noexcept { return listeners_->remove(id); }
    /// The number of events that were dropped, because listeners were too slow or there was no
    /// memory.
    std::uint64_t dropped_events() const noexcept { return listeners_->dropped(); }

private:
    using shard_type = detail::keyed_rate_limiter_shard<Key, Equal, Threading, Clock>;
    using listeners_type = detail::keyed_rate_limiter_listeners<Key, Threading>;
    using request = detail::keyed_rate_limiter_request<basic_keyed_rate_limiter>;
    friend request;

    static constexpr std::size_t shard_count = Threading::is_confined ? 1 : 16;

    template <std::size_t... I>
    basic_keyed_rate_limiter(const Executor& executor, const bandwidth& limit,
                             const keyed_rate_limiter_options& options, const Hash& hash,
                             const Equal& equal, std::index_sequence<I...>)
        : executor_(executor), hash_(hash), listeners_(std::make_shared<listeners_type>()),
          origin_(shard_type::now() - nanoseconds(1)),
          shards_{((void)I, detail::owned_state<shard_type>(executor_, limit, options.max_waiters,
                                                            origin_, listeners_, equal))...}
    {
    }

    static const bandwidth& checked(const bandwidth& limit)
    {
        if (const char* what = gcra::problem(limit))
            detail::throw_error(errc::invalid_argument,
                                (std::string("keyed_rate_limiter: ") + what).c_str());
        return limit;
    }

    struct attempt {
        detail::wait_decision decision;
        nanoseconds retry_after;
    };
    attempt try_now(const Key& key, std::uint64_t n)
    {
        // A deadline in the past, even if the clock goes back: the request never waits.
        request r(*this, key, n, nanoseconds::min());
        const detail::wait_decision decision = r.try_now();
        return {decision, r.retry_after};
    }

    const Executor& executor() const noexcept { return executor_; }

    std::size_t hash(const Key& key) const { return hash_(key); }
    // Uses other bits of the hash than the table of the shard.
    shard_type& shard_of(std::size_t hash) const noexcept
    {
        if constexpr (shard_count == 1)
            return *shards_[0];
        else
            return *shards_[(std::uint64_t(hash) * 0x9E3779B97F4A7C15U) >> 60];
    }

    Executor executor_;
    [[no_unique_address]] Hash hash_;
    std::shared_ptr<listeners_type> listeners_; // of all shards: one event at a time
    nanoseconds origin_;
    std::array<detail::owned_state<shard_type>, shard_count> shards_;
};

/// A keyed rate limiter for any thread and any executor, with the steady clock.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_rate_limiter = basic_keyed_rate_limiter<Key, Hash, Equal>;

namespace local {

/// A keyed rate limiter that is confined to one strand: no atomics, no locks.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_rate_limiter =
    basic_keyed_rate_limiter<Key, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
