// SPDX-License-Identifier: BSL-1.0
// Waiting for the load of a key. The load is an operation that the subject completes. Only loads
// that are confined to a strand end before grant() returns, so this is the subject's policy; the
// state and its waits are the same for both policies.
#pragma once

#include "contract/subjects.hpp"
#include "contract/subjects/task_group.hpp"

#include <turnstile/work/single_flight.hpp>

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

// The loads that have not ended. They are destroyed with their context, or with their subject.
class parked_loads {
    struct any_load {
        virtual ~any_load() = default;
        virtual void complete() = 0;
    };
    template <class Handler>
    struct load_of final : any_load {
        explicit load_of(Handler h) : handler(std::move(h)) {}
        void complete() override { std::move(handler)(error_code(), 7); }
        Handler handler;
    };

public:
    template <class Handler>
    void park(Handler handler)
    {
        loads_.push_back(std::make_unique<load_of<Handler>>(std::move(handler)));
    }
    void complete_all()
    {
        for (auto& load : std::exchange(loads_, {}))
            load->complete();
    }
    void drop_all() { std::exchange(loads_, {}).clear(); }

private:
    std::vector<std::unique_ptr<any_load>> loads_;
};

struct parked_load {
    parked_loads* loads;

    template <class Token>
    auto operator()(Token&& token) const
    {
        return asio::async_initiate<Token, void(error_code, int)>(
            [l = loads](auto handler) { l->park(std::move(handler)); }, token);
    }
};

using confined_flights =
    turnstile::basic_single_flight<int, int, std::hash<int>, std::equal_to<int>,
                                   asio::any_io_executor, strand_confined>;

struct flight_do : subject_base<confined_flights> {
    using base = subject_base<confined_flights>;
    static constexpr bool is_broadcast = true;
    static constexpr bool is_spent = true;
    static constexpr bool keeps_grants = false;
    // The first three expect that a wait is outstanding work, and the last two that only the wait
    // needs memory; test/alloc/work_flights.cpp has loads that find none.
    static constexpr std::array<std::string_view, 5> exempt_from{
        "pending_waits_keep_run_alive", "every_type_is_honoured_and_none_is_not",
        "takes_a_handler_that_can_only_be_dispatched_to", "a_callback_starts_wholly_or_not_at_all",
        "a_coroutine_gets_it_or_an_exception"};

    explicit flight_do(const asio::any_io_executor& executor) : base(untracked_executor(executor))
    {
    }
    flight_do(flight_do&&) = delete;
    ~flight_do() { destroy(); }

    template <class Token>
    auto async_op(Token&& token)
    {
        return object->async_do(1, parked_load{loads.get()}, std::forward<Token>(token));
    }
    auto async_op() { return object->async_do(1, parked_load{loads.get()}); }
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

using single_flight_subjects = std::tuple<flight_do>;

} // namespace contract
