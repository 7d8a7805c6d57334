// SPDX-License-Identifier: BSL-1.0
// The wait of single_flight::async_do. It pins the flight of its key when it is attempted, and
// keeps it pinned until the operation has ended. A request that was not attempted does not refer to
// the state, so it may outlive the object.
#pragma once

#include <turnstile/core/export.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/flight.hpp>

#include <boost/assert.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The outcome of a flight that has ended.
template <class Cell, class Value = typename decltype(Cell::value)::value_type>
TURNSTILE_HOT wait_outcome<std::shared_ptr<const Value>>
outcome_of(std::shared_ptr<Cell> cell, std::exception_ptr* thrown) noexcept
{
    if (cell->value) [[likely]] {
        const Value* const value = &*cell->value;
        return {{}, std::shared_ptr<const Value>(std::move(cell), value)};
    }
    if (thrown)
        *thrown = cell->error;
    return {failure(cell->error).code(), nullptr};
}

// A key or a loader of the user in a request, whose moves must not throw.
template <class T>
class movable_box {
public:
    template <class U>
        requires(!std::is_same_v<std::remove_cvref_t<U>, movable_box>)
    explicit movable_box(U&& value) : value_(std::forward<U>(value)) {}
    T& get() noexcept { return value_; }

private:
    T value_;
};
template <class T>
    requires(!std::is_nothrow_move_constructible_v<T>)
class movable_box<T> {
public:
    template <class U>
        requires(!std::is_same_v<std::remove_cvref_t<U>, movable_box>)
    explicit movable_box(U&& value) : value_(std::make_unique<T>(std::forward<U>(value))) {}
    movable_box(movable_box&&) noexcept = default;
    movable_box(const movable_box& other) : value_(std::make_unique<T>(*other.value_)) {}
    T& get() noexcept { return *value_; }

private:
    std::unique_ptr<T> value_;
};

template <class Owner, class Loader>
struct flight_request {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using key_type = typename Owner::key_type;
    using cell_type = flight_cell<key_type, typename Owner::value_type>;
    using result_type = std::shared_ptr<const typename Owner::value_type>;
    using waiter_type = flight_waiter<threading>;
    using state_type = flight_state<threading>;
    static constexpr request_traits traits{
        .refundable = true, .result = result_source::outcome, .reports_exception = true};

    Owner* owner;
    state_type* state_ptr;
    movable_box<key_type> key;
    movable_box<Loader> loader;
    std::exception_ptr* exception = nullptr;
    flight_pin<threading> pin{};

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

    wait_decision try_now()
    {
        BOOST_ASSERT(&owner->state() == state_ptr); // checks the strand
        using flight_type = operation_flight<cell_type, Loader, executor_type, threading>;
        const key_type& k = key.get();
        const std::size_t hash = owner->hash(k);
        pin = find_flight<cell_type>(*state_ptr, k, hash, owner->equal(), [&] {
            return boost::intrusive_ptr<load_flight<cell_type, threading>>(
                new flight_type(hash, std::make_shared<cell_type>(k), owner->executor(), *state_ptr,
                                std::move(loader.get())));
        });
        return wait_decision::pending();
    }
    void give_back() const noexcept {}
    void prepare(waiter_type& w) const noexcept { w.flights = pin.span(); }
    void keep_exception_in(std::exception_ptr& thrown) noexcept { exception = &thrown; }
    wait_outcome<result_type> conclude_now() const noexcept
    {
        const auto& f = static_cast<load_flight<cell_type, threading>&>(*pin.get());
        return outcome_of(f.result, exception);
    }
    wait_outcome<result_type> conclude(waiter_type&) const noexcept { return conclude_now(); }
};

} // namespace turnstile::inline v0_1::detail
