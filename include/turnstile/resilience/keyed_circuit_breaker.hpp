// SPDX-License-Identifier: BSL-1.0
// A circuit breaker for each key (a host, a tenant), which forgets idle keys.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/listener.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/call/mistakes.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/detail/coroutine_call.hpp>
#include <turnstile/resilience/detail/keyed_circuit_breaker_state.hpp>
#include <turnstile/resilience/keyed_circuit_breaker_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// A circuit for each key, all with the same options; see `basic_circuit_breaker`. A circuit is
/// made when its key is first used.
///
/// A closed circuit that remembers no calls, and to which no operation refers, behaves like that of
/// a key that was never seen. The breaker forgets it, and also a circuit that has not been used for
/// `forget_after`, unless it is forced or still open: each new key makes the breaker examine a few
/// places of its table. Keys are divided into 16 shards with a lock each (one shard if
/// `strand_confined`). A call takes the lock of its shard; it never waits.
///
/// @tparam Key Copyable. Keys are copied, hashed, compared and destroyed without a lock, so that
/// code may use the breaker. It may also throw; then nothing is changed.
/// @tparam Hash, Equal May be called by several threads at the same time.
///
/// @par Thread safety
/// With `thread_safe`, any thread may call any function at any time. With `strand_confined`, all
/// calls, and the completions of the operations, come from one strand.
/// @par Destruction
/// Outstanding calls continue; their outcome is not reported to classifiers or listeners. Permits
/// may outlive the breaker. No listener is called afterwards.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_keyed_circuit_breaker {
    using state_type = detail::keyed_circuit_breaker_state<Key, Equal, Threading, Clock>;
    using entry_ptr = typename state_type::entry_ptr;

public:
    using key_type = Key;
    using executor_type = Executor;
    using threading_policy = Threading;
    /// The clock that measures open times, deadlines and slow calls.
    using clock_type = Clock;
    /// The permit that `try_acquire` returns.
    using permit_type = circuit_breaker_permit<entry_ptr>;
    /// The argument of a listener.
    using event_type = keyed_circuit_breaker_event<Key>;

    /// The same type of breaker for another executor.
    template <class Other>
    struct rebind_executor {
        using other = basic_keyed_circuit_breaker<Key, Hash, Equal, Other, Threading, Clock>;
    };

    /// Constructs a breaker for any number of keys.
    ///
    /// @param circuit The options of each circuit. A `seed` is that of each circuit.
    /// @par Errors
    /// Throws `system_error` with `errc::invalid_argument` if an option breaks its rule; the text
    /// names the member.
    explicit basic_keyed_circuit_breaker(const Executor& executor,
                                         const circuit_breaker_options& circuit = {},
                                         const keyed_circuit_breaker_options& options = {},
                                         const Hash& hash = Hash(), const Equal& equal = Equal())
        : executor_(executor), hash_(hash)
    {
        static_cast<void>(circuit_breaker_machine(circuit)); // checks the options
        if (options.forget_after <= nanoseconds::zero())
            detail::throw_error(errc::invalid_argument,
                                "keyed_circuit_breaker: forget_after must be positive");
        state_ = std::make_shared<state_type>(circuit, options.forget_after, equal);
    }

    /// Constructs a breaker with the executor of an execution context.
    template <detail::execution_context Context>
    explicit basic_keyed_circuit_breaker(Context& context,
                                         const circuit_breaker_options& circuit = {},
                                         const keyed_circuit_breaker_options& options = {},
                                         const Hash& hash = Hash(), const Equal& equal = Equal())
        : basic_keyed_circuit_breaker(context.get_executor(), circuit, options, hash, equal)
    {
    }

    basic_keyed_circuit_breaker(const basic_keyed_circuit_breaker&) = delete;
    basic_keyed_circuit_breaker& operator=(const basic_keyed_circuit_breaker&) = delete;
    ~basic_keyed_circuit_breaker() { state_->close(); }

    /// The executor given at construction.
    executor_type get_executor() const noexcept { return executor_; }

    /// Runs an operation if the circuit of the key admits it, and records its outcome; see
    /// `basic_circuit_breaker::async_call`. The key is remembered for as long as the operation
    /// exists.
    ///
    /// The function itself throws `bad_alloc` if there is no memory for a new key, and the
    /// exceptions of copying, hashing and comparing keys.
    ///
    /// @par Completes when
    /// the operation completes; at once, without starting the operation, if the call is refused.
    /// @par Completion signature
    /// The operation's. Its results pass through unchanged.
    /// @par Errors
    /// The operation's, including an exception that its initiation throws; `errc::circuit_open` if
    /// the call is refused. Where failures are exceptions, a refusal is a `rejection`, which
    /// carries the time until the next try.
    /// @par Executor
    /// The handler's associated executor, by default the breaker's.
    /// @par Per-operation cancellation
    /// The operation's. A cancelled call is ignored, unless `classify` says otherwise.
    /// @par Cancel safety
    /// The operation's. A cancelled probe makes room for another.
    template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        requires(!detail::classifier_for<Token, Op>)
    auto async_call(const Key& key, Op&& op, Token&& token = Token())
    {
        return call(key, std::forward<Op>(op), detail::default_classifier(),
                    std::forward<Token>(token));
    }

    /// Equivalent to `async_call(key, op, token)` with a classifier for this operation.
    ///
    /// @param classify `classify(results...)` returns the `call_outcome` of successful and failed
    /// calls. If it throws, the call has failed.
    template <operation Op, detail::classifier_for<Op> Classify,
              operation_token_for<Op> Token = default_token_t<Executor>>
    auto async_call(const Key& key, Op&& op, Classify classify, Token&& token = Token())
    {
        return call(key, std::forward<Op>(op), std::move(classify), std::forward<Token>(token));
    }
    template <class Op, class... Rest>
        requires detail::mistaken_operation<Op, Rest...>
    auto async_call(const Key&, Op&&, Rest&&...) { return detail::explain_operation<Op>(); }

    /// The circuit of one key, as a stage of a pipeline. Must not outlive the breaker.
    class stage_type {
    public:
        using executor_type = Executor;

        executor_type get_executor() const noexcept { return breaker_->get_executor(); }

        /// Calls `async_call` of the breaker with the key of the stage.
        template <operation Op, operation_token_for<Op> Token = default_token_t<Executor>>
        auto async_call(Op&& op, Token&& token = Token()) const
        {
            return breaker_->async_call(key_, std::forward<Op>(op), std::forward<Token>(token));
        }
        template <class Op, class... Rest>
            requires detail::mistaken_operation<Op, Rest...>
        auto async_call(Op&&, Rest&&...) const { return detail::explain_operation<Op>(); }

    private:
        friend basic_keyed_circuit_breaker;
        stage_type(basic_keyed_circuit_breaker& breaker, const Key& key)
            : breaker_(&breaker), key_(key)
        {
        }

        basic_keyed_circuit_breaker* breaker_;
        Key key_;
    };
    /// A stage of a pipeline that passes through the circuit of `key`.
    [[nodiscard]] stage_type stage_for(const Key& key) { return stage_type(*this, key); }

    /// Acquires a permit for one call with the key. An empty permit means that the call is refused;
    /// its `retry_after` is the time until the next try. The key is remembered for as long as the
    /// permit is not reported.
    ///
    /// Throws `bad_alloc` if there is no memory for a new key, and the exceptions of copying,
    /// hashing and comparing keys.
    [[nodiscard]] permit_type try_acquire(const Key& key)
    {
        return permit_type(state_->find_or_add(key, hash_(key)));
    }
    /// Equivalent to `try_acquire(key)`; sets `ec` to `errc::circuit_open` if the permit is empty,
    /// and clears it otherwise.
    [[nodiscard]] permit_type try_acquire(const Key& key, error_code& ec)
    {
        permit_type permit = try_acquire(key);
        ec = permit ? error_code() : make_error_code(errc::circuit_open);
        return permit;
    }

    /// Opens the circuit of the key until `reset` or `force_closed`. Throws as `try_acquire(key)`
    /// does. A forced circuit is not forgotten.
    void force_open(const Key& key) { change(key, &circuit_breaker_machine::force_open); }
    /// Closes the circuit of the key until `reset` or `force_open`, regardless of the outcome of
    /// calls. Throws as `try_acquire(key)` does.
    void force_closed(const Key& key) { change(key, &circuit_breaker_machine::force_closed); }
    /// Closes the circuit of the key, and clears its window. The outcome of outstanding calls is
    /// not counted. Throws the exceptions of hashing and comparing keys.
    void reset(const Key& key)
    {
        if (const entry_ptr e = find(key))
            state_->call_machine(*e, &circuit_breaker_machine::reset);
    }

    /// The state of the circuit of the key; `closed` for a key that was never seen. Throws the
    /// exceptions of hashing and comparing keys.
    [[nodiscard]] circuit_state state(const Key& key) const
    {
        const entry_ptr e = find(key);
        return e ? state_->query(
                       *e, [](const circuit_breaker_machine& m, nanoseconds) { return m.state(); })
                 : circuit_state::closed;
    }
    /// The time until a call with the key may be admitted: zero if a call would be admitted at
    /// once, and `nanoseconds::max()` if it is unknown. Throws the exceptions of hashing and
    /// comparing keys.
    [[nodiscard]] nanoseconds retry_after(const Key& key) const
    {
        const entry_ptr e = find(key);
        return e ? state_->query(*e, [](const circuit_breaker_machine& m,
                                        nanoseconds now) { return m.retry_after(now); })
                 : nanoseconds::zero();
    }

    /// The number of keys that the breaker remembers, including idle keys not yet forgotten.
    [[nodiscard]] std::size_t size() const noexcept { return state_->size(); }
    /// Forgets all idle keys; returns their number.
    std::size_t purge() noexcept { return state_->purge(); }
    /// The figures of all circuits together.
    [[nodiscard]] keyed_circuit_breaker_stats stats() const noexcept { return state_->stats(); }

    /// Adds a function that is called after each change of the state of a circuit.
    ///
    /// Changes are reported one at a time, also those of different keys, on the thread that caused
    /// the change or on one that is already dispatching events; never under a lock. The listener
    /// may use the breaker. It may also destroy it, unless an initiating function has caused the
    /// change. Its exceptions are ignored. If listeners are slower than changes come, some events
    /// are dropped: one dispatching thread delivers at most 4096 events that other calls add in the
    /// meantime.
    listener_id add_listener(std::function<void(const event_type&)> listener)
    {
        return state_->listeners().add([f = std::move(listener)](const auto& change) {
            f(event_type{change.changed->key, change.from, change.to});
        });
    }
    /// Removes a listener; may be called by a listener. Returns false if `id` is not registered.
    bool remove_listener(listener_id id) noexcept { return state_->listeners().remove(id); }
    /// The number of events that were dropped, because listeners were too slow or there was no
    /// memory.
    [[nodiscard]] std::uint64_t dropped_events() const noexcept
    {
        return state_->listeners().dropped();
    }

private:
    entry_ptr find(const Key& key) const { return state_->find(key, hash_(key)); }
    void change(const Key& key, bool (circuit_breaker_machine::*function)(nanoseconds))
    {
        state_->call_machine(*state_->find_or_add(key, hash_(key)), function);
    }

    template <class Op, class Classify, class Token>
    auto call(const Key& key, Op&& op, Classify classify, Token&& token)
    {
        entry_ptr entry = state_->find_or_add(key, hash_(key));
        if constexpr (detail::called_in_coroutine<Op, Token>)
            return detail::call_in_coroutine(
                detail::call_frame(),
                detail::circuit_breaker_call_request<entry_ptr>{std::move(entry)},
                std::decay_t<Op>(std::forward<Op>(op)), std::move(classify));
        else
            return asio::async_initiate<Token, operation_signature_t<Op>>(
                detail::circuit_breaker_initiation<Executor, entry_ptr>(executor_,
                                                                        std::move(entry)),
                token, std::forward<Op>(op), std::move(classify));
    }

    Executor executor_;
    [[no_unique_address]] Hash hash_;
    std::shared_ptr<state_type> state_;
};

/// A keyed circuit breaker for any thread and any executor, with the steady clock.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_circuit_breaker = basic_keyed_circuit_breaker<Key, Hash, Equal>;

namespace local {

/// A keyed circuit breaker that is confined to one strand: no atomics, no locks.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using keyed_circuit_breaker =
    basic_keyed_circuit_breaker<Key, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
