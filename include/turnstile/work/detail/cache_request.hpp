// SPDX-License-Identifier: BSL-1.0
// The wait of cache::async_get and async_refresh. The attempt looks the key up, and finds or makes
// a flight if there is no value; it then keeps the flight pinned until the operation has ended. A
// request that was not attempted does not refer to the state, so it may outlive the cache.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/cache_loader.hpp>
#include <turnstile/work/detail/cache_state.hpp>
#include <turnstile/work/detail/flight_request.hpp>

#include <boost/assert.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Owner, class Make, class Result>
struct cache_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using key_type = typename Owner::key_type;
    using value_type = typename Owner::value_type;
    using state_type = typename Owner::state_type;
    using entry = typename state_type::entry;
    using result_type = Result;
    using waiter_type = flight_waiter<threading>;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .reports_exception = true};
    static constexpr bool copies = !std::is_same_v<Result, std::shared_ptr<const value_type>>;

    Owner* owner;
    state_type* state_ptr;
    movable_box<key_type> boxed_key;
    Make make;
    bool is_refresh = false; // loads also if there is a value
    std::exception_ptr* exception = nullptr;
    std::shared_ptr<entry> hit{};
    flight_pin<threading> pin{};

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

    TURNSTILE_HOT wait_decision try_now()
    {
        BOOST_ASSERT(&owner->state() == state_ptr); // checks the strand
        const key_type& key = boxed_key.get();
        const std::size_t hash = state_ptr->hash(key);
        if (!is_refresh) {
            hit = state_ptr->hit(key, hash);
            if (hit) [[likely]]
                return wait_decision::granted();
        }
        return find_or_load(key, hash);
    }
    void give_back() const noexcept {}
    void prepare(waiter_type& w) const noexcept
    {
        if (pin)
            w.flights = pin.span();
    }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception = &thrown; }
    TURNSTILE_HOT wait_outcome<result_type> conclude_now() noexcept
    {
        if (hit) [[likely]]
            return outcome(std::move(hit));
        // The caller of a refresh receives its failure, not an old value.
        return outcome(is_refresh ? flight_of(pin).cell : flight_of(pin).result);
    }
    wait_outcome<result_type> conclude(waiter_type&) noexcept { return conclude_now(); }

private:
    using flight_type = load_flight<entry, threading>;

    TURNSTILE_NOINLINE wait_decision find_or_load(const key_type& key, std::size_t hash)
    {
        std::shared_ptr<entry> old;
        auto found = state_ptr->look_up(key, hash, !is_refresh);
        if (is_refresh || found.match == cache_match::stale) {
            old = std::move(found.e);
        } else if (found.e) {
            hit = std::move(found.e);
            if (found.match == cache_match::due) [[unlikely]]
                refresh(hash);
            return wait_decision::granted();
        }
        bool is_own = false;
        pin = find(hash, is_own, std::move(old));
        if (is_own && !is_refresh) {
            // The load of another caller may have ended after the first look.
            auto again = state_ptr->look_up(key, hash, true);
            if (again.e && again.match != cache_match::stale) {
                hit = std::move(again.e);
                pin = {};
                return wait_decision::granted();
            }
        }
        state_ptr->count_miss(hash, is_own);
        return wait_decision::pending();
    }
    static flight_type& flight_of(const flight_pin<threading>& p) noexcept
    {
        return static_cast<flight_type&>(*p.get());
    }
    // `old` is the entry that is loaded again. It may be stale when the load fails.
    flight_pin<threading> find(std::size_t hash, bool& is_own, std::shared_ptr<entry> old)
    {
        const key_type& key = boxed_key.get();
        flight_type* made = nullptr;
        flight_state<threading>& flights = *state_ptr;
        auto found = find_flight<entry>(flights, key, hash, state_ptr->equal(), [&] {
            boost::intrusive_ptr<flight_type> f =
                make(hash, key, {owner->executor(), flights, owner->limits()});
            f->stale = std::move(old);
            made = f.get();
            return f;
        });
        is_own = found.get() == made;
        return found;
    }
    // A hit succeeds also if the refresh cannot be started.
    void refresh(std::size_t hash) noexcept
    {
        try {
            bool is_own = false;
            const auto p = find(hash, is_own, hit);
            if (is_own)
                state_ptr->start_refresh(*p.get());
        } catch (...) {
        }
    }

    TURNSTILE_HOT wait_outcome<result_type> outcome(std::shared_ptr<entry> e) noexcept
    {
        auto shared = outcome_of(std::move(e), exception);
        if constexpr (!copies) {
            return shared;
        } else {
            wait_outcome<result_type> copy{shared.error};
            try {
                if (shared.value)
                    copy.value = wrap(*shared.value);
            } catch (...) {
                const failure thrown(std::current_exception());
                copy.error = thrown.code();
                if (exception)
                    *exception = thrown.exception();
            }
            return copy;
        }
    }
    static typename nothrow_movable<Result>::type wrap(const value_type& v)
    {
        if constexpr (std::is_same_v<typename nothrow_movable<Result>::type,
                                     std::unique_ptr<Result>>)
            return std::make_unique<Result>(v);
        else
            return v;
    }
};

} // namespace turnstile::inline v0_1::detail
