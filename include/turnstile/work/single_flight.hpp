// SPDX-License-Identifier: BSL-1.0
// Concurrent calls for the same key share one operation and its result.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/flight_request.hpp>
#include <turnstile/work/single_flight_stats.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1 {

/// Coalesces calls: while a load for a key runs, further callers for that key wait for its result
/// instead of starting their own. Nothing is kept afterwards; `cache` also stores the values.
///
/// A load is detached from its callers. It runs on a strand of its own on top of the object's
/// executor; the loads of a `local::single_flight` run on the executor itself. Cancelling a caller
/// ends only that caller's wait. When the last caller has left, the load is cancelled. A call that
/// arrives while that load unwinds starts a new load.
///
/// @tparam Key Copyable. Keys are copied, hashed, compared and destroyed without an internal lock,
/// so that this code may use the object. It may also throw; then nothing is changed.
/// @tparam Value The type of the results, which are shared: each caller receives a
/// `std::shared_ptr<const Value>`.
/// @tparam Hash, Equal May be called by several threads at the same time.
///
/// @par Thread safety
/// Any thread may call any function of a `single_flight`; a `local::single_flight` is confined to
/// one strand. A load may use the object, but must not wait for its own key.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Loads that run are cancelled, and not awaited.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe>
class basic_single_flight
    : public detail::io_object<Executor, Threading, detail::flight_state<Threading>> {
    using state_type = detail::flight_state<Threading>;
    using base = detail::io_object<Executor, Threading, state_type>;

public:
    using typename base::executor_type;
    using key_type = Key;
    using value_type = Value;
    /// The result of `async_do`.
    using result_type = std::shared_ptr<const Value>;

    template <class Other>
    struct rebind_executor {
        using other = basic_single_flight<Key, Value, Hash, Equal, Other, Threading>;
    };

    /// Makes an object without loads. Loads run on `executor`.
    explicit basic_single_flight(const std::type_identity_t<Executor>& executor,
                                 const Hash& hash = Hash(), const Equal& equal = Equal())
        : base(executor), hash_(hash), equal_(equal)
    {
    }

    /// Equivalent to `basic_single_flight(context.get_executor(), hash, equal)`.
    template <detail::execution_context Context>
    explicit basic_single_flight(Context& context, const Hash& hash = Hash(),
                                 const Equal& equal = Equal())
        : basic_single_flight(context.get_executor(), hash, equal)
    {
    }

    ~basic_single_flight() { this->state_pointer()->cancel_all(); }

    /// Waits for the value of a key. If no load for the key runs, starts `load`; otherwise `load`
    /// is not started.
    ///
    /// The function itself throws the exceptions of copying the key. Those of hashing and comparing
    /// keys, and `bad_alloc`, are thrown when the operation is started; a coroutine is thrown them
    /// when it awaits.
    ///
    /// @param load An operation, or a function that is called with the key and returns one: a
    /// coroutine `asio::awaitable<Value>(const Key&)`, for example. The reference to the key is
    /// valid until the load has ended. Like `co_spawn`, the call may run the load until it first
    /// waits.
    ///
    /// @par Completes when
    /// the load has ended.
    /// @par Completion signature
    /// `void(error_code, std::shared_ptr<const Value>)`; on success the pointer is not null.
    /// @par Errors
    /// The failure of the load, which all its callers receive: a coroutine that awaits with
    /// `use_awaitable` is thrown the exception of the load, other tokens receive its error code
    /// (see `failure::code`). `operation_aborted` if the wait was cancelled or the object was
    /// destroyed.
    /// @par Executor
    /// The handler's associated executor, by default the object's own.
    /// @par Per-operation cancellation
    /// Terminal, partial and total. It ends the wait; the load is cancelled (terminal) if no other
    /// caller waits for it.
    /// @par Cancel safety
    /// The wait has no effect on other callers.
    /// @par Fairness
    /// The callers of a load complete in the order of their calls.
    template <class Loader, token_for<result_type> Token = default_token_t<Executor>>
        requires detail::loader_of<Loader, Key, Value>
    auto async_do(const Key& key, Loader&& load, Token&& token = Token())
    {
        return detail::start_wait(
            detail::flight_request<basic_single_flight, std::decay_t<Loader>>{
                this, this->state_pointer(), detail::movable_box<Key>(key),
                detail::movable_box<std::decay_t<Loader>>(std::forward<Loader>(load))},
            std::forward<Token>(token));
    }

    /// Detaches the load of a key from the key: the next caller starts a fresh load. The callers of
    /// the detached one still receive its result. Returns false if no load for the key runs. Throws
    /// the exceptions of hashing and comparing keys.
    bool forget(const Key& key)
    {
        const auto pin =
            detail::find_flight<cell_type>(this->state(), key, hash(key), equal_, no_flight);
        if (pin)
            this->state().supersede(*pin.get());
        return static_cast<bool>(pin);
    }

    /// Cancels all loads that run. Their callers receive the failure of their load.
    void cancel() noexcept { this->state().cancel_all(); }

    /// The figures of the object.
    [[nodiscard]] single_flight_stats stats() const noexcept { return this->state().stats(); }

private:
    using cell_type = detail::flight_cell<Key, Value>;
    template <class, class>
    friend struct detail::flight_request;

    static constexpr auto no_flight = []() -> std::nullptr_t { return nullptr; };

    std::size_t hash(const Key& key) const { return hash_(key); }
    const Equal& equal() const noexcept { return equal_; }

    [[no_unique_address]] Hash hash_;
    [[no_unique_address]] Equal equal_;
};

/// Coalesces calls, for any thread and any executor.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using single_flight = basic_single_flight<Key, Value, Hash, Equal>;

namespace local {

/// Coalesces calls on one strand: it needs no atomic operations, no internal lock and no strands.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using single_flight =
    basic_single_flight<Key, Value, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
