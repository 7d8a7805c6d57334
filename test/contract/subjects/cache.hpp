// SPDX-License-Identifier: BSL-1.0
// Waiting for the load of a value: async_get, and async_refresh, which waits also if there is a
// value. As for single_flight, the subject is confined to a strand.
#pragma once

#include "contract/subjects.hpp"
#include "contract/subjects/single_flight.hpp"

#include <turnstile/work/cache.hpp>

#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace contract {

using confined_cache = turnstile::basic_cache<int, int, std::hash<int>, std::equal_to<int>,
                                              asio::any_io_executor, strand_confined>;

struct get_value {
    static auto async(auto& cache, auto load, auto&&... token)
    {
        return cache.async_get(1, std::move(load), std::forward<decltype(token)>(token)...);
    }
};
struct refresh_value {
    static auto async(auto& cache, auto load, auto&&... token)
    {
        return cache.async_refresh(1, std::move(load), std::forward<decltype(token)>(token)...);
    }
};

template <class Way>
struct cache_wait : subject_base<confined_cache> {
    using base = subject_base<confined_cache>;
    static constexpr bool is_broadcast = true;
    static constexpr bool is_spent = true;
    static constexpr bool keeps_grants = false;
    static constexpr auto exempt_from = flight_do::exempt_from;

    // Nothing is stored, so that each operation waits.
    explicit cache_wait(const asio::any_io_executor& executor)
        : base(untracked_executor(executor), turnstile::cache_options<int, int>{.idle_ttl = {}})
    {
    }
    cache_wait(cache_wait&&) = delete;
    ~cache_wait() { destroy(); }

    template <class Token>
    auto async_op(Token&& token)
    {
        return Way::async(*object, parked_load{loads.get()}, std::forward<Token>(token));
    }
    auto async_op() { return Way::async(*object, parked_load{loads.get()}); }
    void grant() { loads->complete_all(); }
    std::size_t available() const { return 0; }
    void consume(const std::shared_ptr<const int>& value) { BOOST_TEST(*value == 7); }
    void destroy()
    {
        object.reset();
        loads->drop_all();
    }

    std::unique_ptr<parked_loads> loads = std::make_unique<parked_loads>();
};

using cache_subjects = std::tuple<cache_wait<get_value>, cache_wait<refresh_value>>;

} // namespace contract
