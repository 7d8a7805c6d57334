// SPDX-License-Identifier: BSL-1.0
// A cache that loads its values, once for each key at a time.
#pragma once

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/listener.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/cache_options.hpp>
#include <turnstile/work/detail/cache_bulk_request.hpp>
#include <turnstile/work/detail/cache_loader.hpp>
#include <turnstile/work/detail/cache_request.hpp>
#include <turnstile/work/detail/cache_state.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1 {

/// A bounded map from keys to values that loads a missing value by an asynchronous operation.
///
/// While a load for a key runs, further callers for that key wait for its result. A load is
/// detached from its callers: it runs on a strand of its own on top of the cache's executor (the
/// loads of a `local::cache` run on the executor itself), and cancelling a caller ends only that
/// caller's wait. When the last caller has left, the load is cancelled, and a caller who arrives
/// while it unwinds starts a fresh one. A refresh in the background needs no caller.
///
/// Values are shared: an eviction, or a newer value, takes none from its readers.
///
/// @tparam Key Copyable. Keys and values are copied, hashed, compared and destroyed without an
/// internal lock, so that this code may use the cache. It may also throw, except a destructor; then
/// nothing is changed, or the load fails with the exception.
/// @tparam Hash, Equal May be called by several threads at the same time. The cache mixes the hash
/// with a random seed.
///
/// @par Thread safety
/// Any thread may call any function of a `cache`; a `local::cache` is confined to one strand. Keys
/// are divided into shards, each with a lock, so that different keys seldom wait for each other. A
/// load may use the cache, but must not wait for its own key.
/// @par Destruction
/// Every waiter completes with `operation_aborted`. Loads that run are cancelled, and not awaited.
/// No listener is called afterwards.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = asio::any_io_executor, class Threading = thread_safe,
          clock_policy Clock = default_clock>
class basic_cache
    : public detail::io_object<Executor, Threading,
                               detail::cache_state<Key, Value, Hash, Equal, Threading, Clock>> {
    using state_type = detail::cache_state<Key, Value, Hash, Equal, Threading, Clock>;
    using base = detail::io_object<Executor, Threading, state_type>;
    static constexpr bool can_be_copied =
        std::copy_constructible<Value> && std::default_initializable<Value>;

public:
    using typename base::executor_type;
    using key_type = Key;
    using value_type = Value;
    using clock_type = Clock;
    using options_type = cache_options<Key, Value>;
    using event_type = cache_event<Key, Value>;
    /// The result of `async_get`.
    using value_pointer = std::shared_ptr<const Value>;

    template <class Other>
    struct rebind_executor {
        using other = basic_cache<Key, Value, Hash, Equal, Other, Threading, Clock>;
    };

    /// Makes an empty cache without a loader: each `async_get` is passed one. Throws `system_error`
    /// with `errc::invalid_argument` if an option breaks its rule.
    explicit basic_cache(const std::type_identity_t<Executor>& executor,
                         const options_type& options = {}, const Hash& hash = Hash(),
                         const Equal& equal = Equal())
        : base(executor, options, hash, equal), limits_(make_limits(options))
    {
    }
    /// Makes an empty cache with a loader, which is copied for each load; see `async_get`.
    template <class Loader>
        requires detail::loader_of<Loader, Key, Value>
        basic_cache(const std::type_identity_t<Executor>& executor, const options_type& options,
                    Loader&& load, const Hash& hash = Hash(), const Equal& equal = Equal())
            : basic_cache(executor, options, hash, equal)
        {
            factory_ = std::make_shared<detail::loader_factory<factory, std::decay_t<Loader>>>(
                std::forward<Loader>(load));
        }

        /// Equivalent to the constructors with `context.get_executor()`.
        template <detail::execution_context Context>
        explicit basic_cache(Context& context, const options_type& options = {},
                             const Hash& hash = Hash(), const Equal& equal = Equal())
            : basic_cache(context.get_executor(), options, hash, equal)
        {
        }
        template <detail::execution_context Context, class Loader>
            requires detail::loader_of<Loader, Key, Value>
            basic_cache(Context& context, const options_type& options, Loader&& load,
                        const Hash& hash = Hash(), const Equal& equal = Equal())
                : basic_cache(context.get_executor(), options, std::forward<Loader>(load), hash,
                              equal)
            {
            }

            ~basic_cache() { this->state_pointer()->abandon(); }

            /// Waits for the value of a key. A coroutine that finds it in the cache does not
            /// suspend, and allocates nothing, except what a copy of the key allocates.
            ///
            /// If the value is missing or expired, and no load for the key runs, the call starts
            /// `load`. The options say when an expired value is handed out, and when a load starts
            /// in the background.
            ///
            /// The function itself throws the exceptions of copying the key. Those of hashing and
            /// comparing keys, and `bad_alloc`, are thrown when the operation is started; a
            /// coroutine is thrown them when it awaits.
            ///
            /// @param load An operation, or a function that is called with the key and returns one:
            /// a coroutine `asio::awaitable<Value>(const Key&)`, for example. The reference to the
            /// key is valid until the load has ended. Like `co_spawn`, the call may run the load
            /// until it first waits.
            ///
            /// @par Completes when
            /// the cache has the value, or the load has ended.
            /// @par Completion signature
            /// `void(error_code, std::shared_ptr<const Value>)`; on success the pointer is not
            /// null.
            /// @par Errors
            /// The failure of the load, which all its callers receive: a coroutine that awaits with
            /// `use_awaitable` is thrown the exception of the load, other tokens receive its error
            /// code (see `failure::code`). `errc::timed_out` after `load_timeout`.
            /// `operation_aborted` if the wait was cancelled or the cache was destroyed.
            /// @par Executor
            /// The handler's associated executor, by default the cache's own.
            /// @par Per-operation cancellation
            /// Terminal, partial and total. It ends the wait; the load is cancelled (terminal) if
            /// no other caller waits for it.
            /// @par Cancel safety
            /// The wait has no effect on other callers.
            /// @par Fairness
            /// The callers of a load complete in the order of their calls.
            template <class Loader, token_for<value_pointer> Token = default_token_t<Executor>>
                requires detail::loader_of<Loader, Key, Value>
            auto async_get(const Key& key, Loader&& load, Token&& token = Token())
            {
                return start<value_pointer>(key, by_loader(std::forward<Loader>(load)), false,
                                            std::forward<Token>(token));
            }
            /// Equivalent to `async_get(key, load, token)` with the loader of the cache. Throws
            /// `system_error` with `errc::invalid_argument` if it has none.
            template <token_for<value_pointer> Token = default_token_t<Executor>>
            auto async_get(const Key& key, Token&& token = Token())
            {
                return start<value_pointer>(key, by_factory(), false, std::forward<Token>(token));
            }

            /// Equivalent to `async_get`, and completes with a copy of the value:
            /// `void(error_code, Value)`. An exception of the copy is an error of this caller only.
            /// Requires a value that can be copied and default constructed.
            template <class Loader, token_for<Value> Token = default_token_t<Executor>>
                requires(detail::loader_of<Loader, Key, Value>&& can_be_copied)
            auto async_get_copy(const Key& key, Loader&& load, Token&& token = Token())
            {
                return start<Value>(key, by_loader(std::forward<Loader>(load)), false,
                                    std::forward<Token>(token));
            }
            template <token_for<Value> Token = default_token_t<Executor>>
            requires can_be_copied auto async_get_copy(const Key& key, Token&& token = Token())
            {
                return start<Value>(key, by_factory(), false, std::forward<Token>(token));
            }

            /// Loads a value even if the cache has one, which is handed out until the load has
            /// succeeded. Joins a load that runs already. If the load fails, this caller receives
            /// the failure, also with `stale_if_error`. Otherwise equivalent to `async_get`.
            template <class Loader, token_for<value_pointer> Token = default_token_t<Executor>>
                requires detail::loader_of<Loader, Key, Value>
            auto async_refresh(const Key& key, Loader&& load, Token&& token = Token())
            {
                return start<value_pointer>(key, by_loader(std::forward<Loader>(load)), true,
                                            std::forward<Token>(token));
            }
            template <token_for<value_pointer> Token = default_token_t<Executor>>
            auto async_refresh(const Key& key, Token&& token = Token())
            {
                return start<value_pointer>(key, by_factory(), true, std::forward<Token>(token));
            }

            /// Waits for the values of several keys. Those that are missing, and that no other call
            /// loads, are loaded by one operation. `load_timeout` and `max_loads` do not apply to
            /// it, a failure that is kept (`negative_ttl`) is loaded again, and a value that is due
            /// for a refresh is handed out without one.
            ///
            /// @param keys A range of keys, which is copied.
            /// @param load A function that is called with a `std::vector<Key>`, and returns an
            /// operation whose result is a range of pairs of a key and a value: a coroutine
            /// `asio::awaitable<std::map<Key, Value>>(const std::vector<Key>&)`, for example. The
            /// reference is valid until the load has ended.
            ///
            /// @par Completes when
            /// the cache has all values, or all loads have ended.
            /// @par Completion signature
            /// `void(error_code, std::vector<std::shared_ptr<const Value>>)`; the values in the
            /// order of the keys. A key that the loader did not find has a null pointer. A caller
            /// of `async_get` that has joined its load receives `asio::error::not_found`.
            /// @par Errors
            /// The failure of a load; see `async_get`. The values that were loaded are stored all
            /// the same.
            /// @par Executor
            /// The handler's associated executor, by default the cache's own.
            /// @par Per-operation cancellation
            /// Terminal, partial and total. It ends the wait; the load is cancelled if no caller
            /// waits for any of its keys.
            /// @par Cancel safety
            /// The wait has no effect on other callers.
            /// @par Fairness
            /// As that of `async_get`.
            template <std::ranges::input_range Keys, class Loader,
                      token_for<std::vector<value_pointer>> Token = default_token_t<Executor>>
                requires(std::constructible_from<Key, std::ranges::range_reference_t<Keys>>&&
                             detail::bulk_loader<std::decay_t<Loader>, Key>)
            auto async_get_all(Keys&& keys, Loader&& load, Token&& token = Token())
            {
                std::vector<Key> copies;
                for (auto&& key : keys)
                    copies.emplace_back(key);
                return detail::start_wait(
                    detail::cache_bulk_request<basic_cache, std::decay_t<Loader>>{
                        this, this->state_pointer(), std::move(copies),
                        detail::movable_box<std::decay_t<Loader>>(std::forward<Loader>(load))},
                    std::forward<Token>(token));
            }

            /// Stores a value. A load of the key that runs is not stored any more; its callers
            /// still receive its result.
            template <class V>
                requires std::constructible_from<Value, V>
            void put(const Key& key, V&& value)
            {
                const auto state = keep_state();
                const auto e = std::make_shared<entry>(state->hash(key), key);
                e->value.emplace(std::forward<V>(value));
                state->put(e);
            }

            /// The value of a key, or null if it is missing or expired. This is no use of the
            /// entry: neither the eviction nor `idle_ttl` takes notice.
            [[nodiscard]] value_pointer peek(const Key& key) const
            {
                const auto state = keep_state();
                const auto found = state->look_up(key, state->hash(key), false);
                if (!found.e || found.is_expired || !found.e->value)
                    return nullptr;
                return value_pointer(found.e, &*found.e->value);
            }
            /// Whether `peek` returns a value.
            [[nodiscard]] bool contains(const Key& key) const { return peek(key) != nullptr; }

            /// Removes the value of a key. A load of the key that runs is not stored any more, and
            /// the next caller starts a fresh one. Returns whether there was a value, expired or
            /// not.
            bool invalidate(const Key& key) { return keep_state()->invalidate(key); }
            /// Removes the values for which `predicate(const Key&, const Value&)` is true. The
            /// predicate is called without a lock. No load that runs is stored any more. Returns
            /// the number of values.
            template <std::predicate<const Key&, const Value&> Predicate>
            std::size_t invalidate_if(Predicate predicate)
            {
                return keep_state()->invalidate_if(predicate);
            }
            /// Removes all values. No load that runs is stored any more.
            void clear() noexcept { keep_state()->clear(); }
            /// Removes the entries that have expired and cannot be handed out any more. Each
            /// insertion removes some, so there is no need to call this. Returns their number.
            std::size_t purge() noexcept { return keep_state()->purge(); }

            /// The number of entries, also those that have expired and were not removed.
            [[nodiscard]] std::size_t size() const noexcept { return this->state().size(); }
            /// The number of shards.
            [[nodiscard]] std::size_t shards() const noexcept
            {
                return this->state().shard_count();
            }
            /// The figures of the cache.
            [[nodiscard]] cache_stats stats() const noexcept { return this->state().stats(); }

            /// Adds a function that is called after an entry was removed, with the cause.
            ///
            /// Events are reported one at a time, on the thread that has removed the entry or on
            /// one that is already dispatching events; never under a lock. The listener may use the
            /// cache. It may also destroy it, unless an initiating function has removed the entry.
            /// Its exceptions are ignored. If listeners are slower than entries are removed, some
            /// events are dropped: one dispatching thread delivers at most 4096 events that other
            /// calls add in the meantime.
            listener_id add_listener(std::function<void(const event_type&)> listener)
            {
                return this->state().listeners().add(
                    [f = std::move(listener)](const auto& removed) {
                        f(event_type{removed.entry->key,
                                     value_pointer(removed.entry, &*removed.entry->value),
                                     removed.cause});
                    });
            }
            /// Removes a listener; a listener may call it. Returns false if `id` is not registered.
            bool remove_listener(listener_id id) noexcept
            {
                return this->state().listeners().remove(id);
            }
            /// The number of events that were dropped, because listeners were too slow or there was
            /// no memory.
            [[nodiscard]] std::uint64_t dropped_events() const noexcept
            {
                return this->state().listeners().dropped();
            }

        private:
            using entry = typename state_type::entry;
            using factory = detail::flight_factory<entry, Executor, Threading, Clock>;
            using limits_type = typename factory::limits_type;
            template <class, class, class>
            friend struct detail::cache_request;
            template <class, class>
            friend struct detail::cache_bulk_request;

            // A function of the user, or a listener, may destroy the cache.
            boost::intrusive_ptr<state_type> keep_state() const noexcept
            {
                return boost::intrusive_ptr<state_type>(&this->state());
            }
            const limits_type& limits() const noexcept { return limits_; }
            limits_type make_limits(const options_type& options)
            {
                limits_type limits{nullptr, options.load_timeout};
                if (options.max_loads != options_type::unlimited)
                    limits.places = std::make_shared<typename limits_type::bulkhead_type>(
                        this->executor(),
                        bulkhead_options{.limit = options.max_loads,
                                         .max_waiters = std::numeric_limits<std::uint64_t>::max()});
                return limits;
            }

            template <class Loader>
            static auto by_loader(Loader&& load)
            {
                return detail::make_by_loader<factory, std::decay_t<Loader>>{
                    detail::movable_box<std::decay_t<Loader>>(std::forward<Loader>(load))};
            }
            auto by_factory() const
            {
                if (!factory_)
                    detail::throw_error(
                        errc::invalid_argument,
                        "cache: a call without a loader needs one in the constructor");
                return detail::make_by_factory<factory>{factory_};
            }

            template <class Result, class Make, class Token>
            auto start(const Key& key, Make make, bool is_refresh, Token&& token)
            {
                return detail::start_wait(
                    detail::cache_request<basic_cache, Make, Result>{this, this->state_pointer(),
                                                                     detail::movable_box<Key>(key),
                                                                     std::move(make), is_refresh},
                    std::forward<Token>(token));
            }

            limits_type limits_;
            std::shared_ptr<factory> factory_; // null without a loader
};

/// A cache for any thread and any executor, with the steady clock.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using cache = basic_cache<Key, Value, Hash, Equal>;

namespace local {

/// A cache for one strand: it needs no internal lock and no strands.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using cache = basic_cache<Key, Value, Hash, Equal, asio::any_io_executor, strand_confined>;

} // namespace local
} // namespace turnstile::inline v0_1
