// SPDX-License-Identifier: BSL-1.0
// A rate limiter for each key (a user, an address), which forgets those that are idle.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/detail/key_shard.hpp>
#include <turnstile/resilience/detail/permitted_call.hpp>
#include <turnstile/resilience/detail/rate_limiter_request.hpp>
#include <turnstile/resilience/gcra.hpp>
#include <turnstile/resilience/rate_options.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace turnstile::inline v0_1 {

/// Settings of a keyed rate limiter that are made once.
template <class Key>
struct keyed_rate_options {
    /// How many may wait for each key; who comes after them is `errc::rejected`.
    std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
    /// Called after each rejection, also of a waiter that `set_limit` leaves no hope; there are no
    /// other events. Rejections are told one at a time, also those of different keys, on the
    /// thread that caused one or is just telling another, and never under a lock. The listener
    /// may use the limiter, but not destroy it. What it throws is ignored.
    std::function<void(const Key&, const rate_event&)> listener{};
};

/// A token bucket for each key, all of one bandwidth; see `basic_rate_limiter`.
///
/// A key whose bucket is full again, and that nobody waits for, is no different from one that
/// was never seen, and is forgotten: each new key makes it look at a few old ones. Keys are
/// spread over 16 parts (one if `strand_confined`), each with a lock and a timer of its own.
///
/// `Key` is copyable. Keys are copied, hashed, compared and destroyed without a lock: that may
/// throw, which changes nothing, and use the limiter. `Hash` and `Equal` may be called by several
/// threads at once.
/// Fairness: strict FIFO for each key; keys do not wait for each other.
/// Destruction: every waiter completes with `operation_aborted`.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_keyed_rate_limiter {
public:
    using key_type = Key;
    using executor_type = Executor;
    using threading_policy = Threading;
    using clock_type = Clock;

    template <class Other>
    struct rebind_executor {
        using other = basic_keyed_rate_limiter<Key, Hash, Equal, Other, Threading, Clock>;
    };

    /// Throws `system_error` with `errc::invalid_argument` if `gcra::valid` does not accept the
    /// bandwidth; its text says why.
    explicit basic_keyed_rate_limiter(const Executor& executor, const bandwidth& limit,
                                      keyed_rate_options<Key> options = {},
                                      const Hash& hash = Hash(), const Equal& equal = Equal())
        : basic_keyed_rate_limiter(executor, checked(limit), options, hash, equal,
                                   std::make_index_sequence<parts>())
    {
    }

    /// The same, with the context's executor.
    template <detail::execution_context Context>
    explicit basic_keyed_rate_limiter(Context& context, const bandwidth& limit,
                                      keyed_rate_options<Key> options = {},
                                      const Hash& hash = Hash(), const Equal& equal = Equal())
        : basic_keyed_rate_limiter(context.get_executor(), limit, std::move(options), hash, equal)
    {
    }

    basic_keyed_rate_limiter(const basic_keyed_rate_limiter&) = delete;
    basic_keyed_rate_limiter& operator=(const basic_keyed_rate_limiter&) = delete;
    ~basic_keyed_rate_limiter() { listeners_->close(); }

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

    /// Takes n permits of the key's bucket if they are there and nobody waits for it. Throws
    /// `bad_alloc` if there is no memory for a new key, and what copying, hashing or comparing keys
    /// throws. Thread safety: as the policy says.
    [[nodiscard]] bool try_acquire(const Key& key, std::uint64_t n = 1)
    {
        nanoseconds ignored{};
        return try_acquire(key, n, ignored);
    }
    /// The same, and says when to try again: zero if it succeeded, the maximum if never.
    [[nodiscard]] bool try_acquire(const Key& key, std::uint64_t n, nanoseconds& retry_after)
    {
        request a(*this, key, n, nanoseconds::zero());
        const bool taken = a.try_now().is_granted();
        retry_after = a.retry_after;
        return taken;
    }

    /// Waits for `n` permits of the key's bucket, all at once.
    ///
    /// Completes when: n permits are there and everyone who asked for the key before has been
    /// served.
    /// Signature: `void(error_code)`.
    /// Errors: `operation_aborted` if cancelled, or the limiter was destroyed;
    /// `errc::too_large` if n is, or by `set_limit` becomes, more than the burst;
    /// `errc::rejected` if `max_waiters` wait for the key already, or for more permits than can
    /// be counted, or there is no memory for a timer; `errc::invalid_argument` if n is 0. To a
    /// coroutine all but the first are thrown as a `rejection`, which says when to try again.
    /// The function itself throws as `try_acquire` does. The key is remembered for as long as
    /// the operation exists.
    /// Executor: the handler's associated executor, by default the limiter's own.
    /// Cancellation: terminal, partial and total.
    /// Cancel safety: cancelled before the handler runs, it has used nothing, and those behind
    /// it move up. A coroutine that somebody can cancel takes no short cut.
    /// Fairness: FIFO for each key. Thread safety: as the policy says.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, std::uint64_t n, Token&& token = Token())
    {
        return detail::start_wait(request(*this, key, n, nanoseconds::max()),
                                  std::forward<Token>(token));
    }

    /// The same, if that takes no longer than `within`; if it would, completes at once with
    /// `errc::rate_limited`. A negative duration is zero. `time_until` says when to try again.
    template <class Rep, class Period, token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, std::uint64_t n, std::chrono::duration<Rep, Period> within,
                       Token&& token = Token())
    {
        return detail::start_wait(request(*this, key, n, detail::at_least_zero(within)),
                                  std::forward<Token>(token));
    }

    /// Waits for one permit.
    template <token_for<void> Token = default_token_t<Executor>>
    auto async_acquire(const Key& key, Token&& token = Token())
    {
        return async_acquire(key, 1, std::forward<Token>(token));
    }

    /// Waits for one permit of the key's bucket, then runs the operation; as
    /// `rate_limiter::async_call`.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(const Key& key, Op&& op, Token&& token = Token())
    {
        return detail::call_when_permitted(request(*this, key, 1, nanoseconds::max()),
                                           std::forward<Op>(op), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(const Key&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The limiter for one key: a stage of a pipeline. It must not outlive the limiter.
    class stage_type {
    public:
        using executor_type = Executor;

        executor_type get_executor() const noexcept { return limiter_->get_executor(); }

        /// As the limiter's, for this key.
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
    [[nodiscard]] stage_type stage_for(const Key& key) { return stage_type(*this, key); }

    /// How long a request for n permits would wait if it were made now: zero if not at all, the
    /// maximum if for ever. Throws what hashing or comparing keys throws. Thread safety: as the
    /// policy says.
    [[nodiscard]] nanoseconds time_until(const Key& key, std::uint64_t n = 1) const
    {
        const std::size_t h = hash(key);
        return shard(h).time_until(key, h, n);
    }

    /// Changes the bandwidth for all keys, as `rate_limiter::set_limits` does; takes time in
    /// proportion to their number. Errors: `errc::invalid_argument`; the state is unchanged.
    /// Thread safety: as the policy says.
    void set_limit(const bandwidth& limit, error_code& ec) noexcept
    {
        ec = gcra::valid(limit) ? error_code() : make_error_code(errc::invalid_argument);
        for (auto& part : parts_) {
            if (!ec)
                part->change(limit);
        }
    }
    /// The same, throwing `system_error`.
    void set_limit(const bandwidth& limit)
    {
        error_code ec;
        set_limit(checked(limit), ec);
    }

    /// How many keys it remembers, idle ones included that it has not come across yet.
    [[nodiscard]] std::size_t size() const noexcept
    {
        std::size_t sum = 0;
        for (const auto& part : parts_)
            sum += part->size();
        return sum;
    }

    /// Forgets all idle keys now; how many those were. Thread safety: as the policy says.
    std::size_t purge() noexcept
    {
        std::size_t sum = 0;
        for (auto& part : parts_)
            sum += part->purge();
        return sum;
    }

    /// What it has done so far, for all keys. Thread safety: as the policy says.
    [[nodiscard]] rate_stats stats() const noexcept
    {
        rate_stats sum;
        for (const auto& part : parts_) {
            const rate_stats s = part->stats();
            sum.granted += s.granted;
            sum.rejected += s.rejected;
            sum.waited += s.waited;
            sum.cancelled += s.cancelled;
            sum.waiting += s.waiting;
        }
        return sum;
    }

private:
    using shard_type = detail::key_shard<Key, Equal, Threading, Clock>;
    using listeners_type = detail::keyed_listeners<Key, Threading>;
    using request = detail::keyed_request<basic_keyed_rate_limiter>;
    friend request;

    static constexpr std::size_t parts = Threading::is_confined ? 1 : 16;

    template <std::size_t... I>
    basic_keyed_rate_limiter(const Executor& executor, const bandwidth& limit,
                             const keyed_rate_options<Key>& options, const Hash& hash,
                             const Equal& equal, std::index_sequence<I...>)
        : executor_(executor), hash_(hash), listeners_(std::make_shared<listeners_type>()),
          origin_(shard_type::now() - nanoseconds(1)),
          parts_{((void)I, detail::owned_state<shard_type>(executor_, limit, options.max_waiters,
                                                           origin_, listeners_, equal))...}
    {
        if (options.listener)
            listeners_->add([listener = options.listener](const auto& event) {
                listener(event.entry->key, event.what);
            });
    }

    static const bandwidth& checked(const bandwidth& limit)
    {
        if (const char* what = gcra::problem(limit))
            detail::throw_error(errc::invalid_argument,
                                (std::string("keyed_rate_limiter: ") + what).c_str());
        return limit;
    }

    const Executor& executor() const noexcept { return executor_; }

    std::size_t hash(const Key& key) const { return hash_(key); }
    // By other bits of the hash than the table in it uses.
    shard_type& shard(std::size_t hash) const noexcept
    {
        if constexpr (parts == 1)
            return *parts_[0];
        else
            return *parts_[(std::uint64_t(hash) * 0x9E3779B97F4A7C15U) >> 60];
    }

    Executor executor_;
    [[no_unique_address]] Hash hash_;
    std::shared_ptr<listeners_type> listeners_; // one for all parts: one event at a time
    nanoseconds origin_;
    std::array<detail::owned_state<shard_type>, parts> parts_;
};

/// The usual keyed rate limiter: any thread, any executor, the steady clock.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_rate_limiter = basic_keyed_rate_limiter<Key, Hash, Equal>;

namespace local {

/// A keyed rate limiter for one strand: no atomics, no locks.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_rate_limiter =
    basic_keyed_rate_limiter<Key, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
