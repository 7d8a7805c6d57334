// SPDX-License-Identifier: BSL-1.0
// The wait of cache::async_get_all. The attempt looks each key up, joins the load of each missing
// key that is loaded already, and makes one bulk_load for the others. The flights stay pinned until
// the operation has ended, so that it waits for all of them.
#pragma once

#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/bulk_load.hpp>
#include <turnstile/work/detail/cache_state.hpp>
#include <turnstile/work/detail/flight_request.hpp>

#include <boost/asio/error.hpp>
#include <boost/assert.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Owner, class Loader>
struct cache_bulk_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using key_type = typename Owner::key_type;
    using state_type = typename Owner::state_type;
    using entry = typename state_type::entry;
    using result_type = std::vector<typename Owner::value_pointer>;
    using waiter_type = flight_waiter<threading>;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .reports_exception = true};

    Owner* owner;
    state_type* state_ptr;
    std::vector<key_type> keys;
    movable_box<Loader> loader;
    std::exception_ptr* exception = nullptr;
    result_type values{};                      // null for a key that is loaded
    std::vector<std::size_t> missing{};        // their positions
    std::vector<flight_pin<threading>> pins{}; // and their flights
    std::vector<flight_ptr<threading>> flights{};

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

    wait_decision try_now()
    {
        BOOST_ASSERT(&owner->state() == state_ptr); // checks the strand
        using bulk_type = bulk_load<state_type, Loader, executor_type, threading>;
        struct sealing {
            boost::intrusive_ptr<bulk_type> load;
            ~sealing()
            {
                if (load)
                    load->seal();
            }
        } bulk;
        values.assign(keys.size(), nullptr);
        missing.reserve(keys.size());
        pins.reserve(keys.size());
        flights.reserve(keys.size());
        for (std::size_t i = 0; i != keys.size(); ++i) {
            const std::size_t hash = state_ptr->hash(keys[i]);
            auto found = state_ptr->look_up(keys[i], hash, true);
            if (found.e && found.match != cache_match::stale && found.e->value) {
                const auto* const value = &*found.e->value;
                values[i] = {std::move(found.e), value};
                continue;
            }
            boost::intrusive_ptr<bulk_flight<bulk_type>> made;
            try {
                pins.push_back(find(hash, keys[i], [&] {
                    if (!bulk.load)
                        bulk.load = make_bulk<bulk_type>();
                    made = bulk.load->add(keys[i], hash);
                    if (found.match == cache_match::stale)
                        made->stale = std::move(found.e);
                    return boost::intrusive_ptr<load_flight<entry, threading>>(made);
                }));
            } catch (...) {
                if (made)
                    bulk.load->forget(*made);
                throw;
            }
            const bool is_own = made && pins.back().get() == made;
            if (made && !is_own)
                bulk.load->forget(*made);
            missing.push_back(i);
            flights.push_back(pins.back().get());
            state_ptr->count_miss(hash, is_own);
        }
        return missing.empty() ? wait_decision::granted() : wait_decision::pending();
    }
    void give_back() const noexcept {}
    void prepare(waiter_type& w) const noexcept { w.flights = flights; }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception = &thrown; }
    wait_outcome<result_type> conclude_now() noexcept
    {
        wait_outcome<result_type> all;
        for (std::size_t i = 0; i != missing.size(); ++i) {
            auto one = outcome_of(static_cast<load_flight<entry, threading>&>(*flights[i]).result,
                                  exception);
            if (one.error == asio::error::not_found)
                continue;
            if (one.error)
                return {one.error, {}};
            values[missing[i]] = std::move(one.value);
        }
        if (exception)
            *exception = nullptr; // of a value that was not found
        all.value = std::move(values);
        return all;
    }
    wait_outcome<result_type> conclude(waiter_type&) noexcept { return conclude_now(); }

private:
    template <class Make>
    flight_pin<threading> find(std::size_t hash, const key_type& key, Make make)
    {
        return find_flight<entry>(static_cast<flight_state<threading>&>(*state_ptr), key, hash,
                                  state_ptr->equal(), std::move(make));
    }
    template <class Bulk>
    boost::intrusive_ptr<Bulk> make_bulk()
    {
        boost::intrusive_ptr<Bulk> bulk(
            new Bulk(owner->executor(), *state_ptr, std::move(loader.get())));
        bulk->reserve(keys.size());
        return bulk;
    }
};

} // namespace turnstile::inline v0_1::detail
