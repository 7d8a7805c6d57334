// SPDX-License-Identifier: BSL-1.0
// The loaders of a cache: how a call makes the flight that loads its key. A loader is passed to the
// call, or to the constructor of the cache, where its type is erased. The options load_timeout and
// max_loads wrap its operation in a timeout and in a bulkhead.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/work/detail/flight_request.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Executor, class Threading, clock_policy Clock>
struct load_limits {
    using bulkhead_type = basic_bulkhead<Executor, Threading, Clock>;

    std::shared_ptr<bulkhead_type> places; // null: no limit of max_loads
    nanoseconds timeout = nanoseconds::max();
};

// An operation with the limits.
template <class Op, class Limits, clock_policy Clock>
struct limited_operation {
    using signature = operation_signature_t<Op>;
    Op op;
    Limits limits;

    template <class Token>
    auto operator()(Token&& token) &&
    {
        return asio::async_initiate<Token, signature>(
            [](auto handler, Op inner, const Limits& l) {
                if (l.places)
                    return l.places->async_call(with_time_limit{std::move(inner), l.timeout},
                                                std::move(handler));
                return with_time_limit{std::move(inner), l.timeout}(std::move(handler));
            },
            token, std::move(op), std::move(limits));
    }

private:
    struct with_time_limit {
        Op op;
        nanoseconds limit;

        template <class Token>
        auto operator()(Token&& token) &&
        {
            return asio::async_initiate<Token, signature>(
                [](auto handler, Op inner, nanoseconds t) {
                    const auto executor = asio::get_associated_executor(handler);
                    if (t != nanoseconds::max())
                        async_with_timeout<Clock>(t, std::move(inner), std::move(handler));
                    else
                        initiate_child(std::move(inner), executor, std::move(handler));
                },
                token, std::move(op), limit);
        }
    };
};

// A loader whose operations have the limits.
template <class Loader, class Key, class Limits, clock_policy Clock>
struct limited_loader {
    using maker = loader_operation<Loader, Key>;
    using operation_type = limited_operation<typename maker::type, Limits, Clock>;
    Loader loader;
    Limits limits;

    operation_type operator()(const Key& key)
    {
        return {maker::call(std::move(loader), key), std::move(limits)};
    }
};

// Makes the flights of a loader that a call was passed.
template <class Cell, class Executor, class Threading, clock_policy Clock>
struct flight_factory {
    using key_type = std::remove_cvref_t<decltype(Cell::key)>;
    using flight_type = load_flight<Cell, Threading>;
    using flight_pointer = boost::intrusive_ptr<flight_type>;
    using limits_type = load_limits<Executor, Threading, Clock>;

    struct place {
        const Executor& executor;
        flight_state<Threading>& state;
        const limits_type& limits;
    };

    template <class Loader>
    static flight_pointer make(std::size_t hash, const key_type& key, const place& where,
                               Loader&& loader)
    {
        using limited = limited_loader<std::decay_t<Loader>, key_type, limits_type, Clock>;
        return flight_pointer(new operation_flight<Cell, limited, Executor, Threading>(
            hash, std::make_shared<Cell>(hash, key), where.executor, where.state,
            limited{std::forward<Loader>(loader), where.limits}));
    }

    virtual ~flight_factory() = default;
    virtual flight_pointer make(std::size_t hash, const key_type& key, const place& where) = 0;
};

// The same for the loader of the cache, which is copied for each load.
template <class Factory, class Loader>
class loader_factory final : public Factory {
public:
    explicit loader_factory(Loader loader) : loader_(std::move(loader)) {}
    typename Factory::flight_pointer make(std::size_t hash, const typename Factory::key_type& key,
                                          const typename Factory::place& where) override
    {
        return Factory::make(hash, key, where, Loader(loader_));
    }

private:
    const Loader loader_;
};

// Both as function objects for a request.
template <class Factory>
struct make_by_factory {
    std::shared_ptr<Factory> factory;
    auto operator()(std::size_t hash, const auto& key, const typename Factory::place& where)
    {
        return factory->make(hash, key, where);
    }
};
template <class Factory, class Loader>
struct make_by_loader {
    movable_box<Loader> loader;
    auto operator()(std::size_t hash, const auto& key, const typename Factory::place& where)
    {
        return Factory::make(hash, key, where, std::move(loader.get()));
    }
};

} // namespace turnstile::inline v0_1::detail
