// SPDX-License-Identifier: BSL-1.0
// One operation that a supervisor runs: its cancellation signal, its result, and whether it is
// running. A timeout has one, a retry uses one for each attempt in turn, and a hedge has several.
//
// All members but `start_` are used on the strand of the supervisor, or by the initiating function
// of the call, before it opens the state word. `start_` decides between the function that starts
// the operation and the destructor of the handler, which may run on any thread:
//
// - under_way: the initiating function of the operation is running.
// - handler_back: it is running, and the handler was destroyed without being called.
// - over: it has returned or thrown; or no operation was started.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/call/nothrow_results.hpp>
#include <turnstile/detail/call/operation_result.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <exception>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Signature>
class supervised_operation {
public:
    using result_type = typename result_traits<Signature>::tuple;
    using box_type = nothrow_results<result_type>;

    asio::cancellation_signal signal;
    box_type result;
    // Instead of a result: thrown by the initiating function, or by a move of the result.
    std::exception_ptr thrown;
    bool running = false;

    // These two functions enclose the initiating function. end_start() returns false if the handler
    // was destroyed in between.
    void begin_start() noexcept
    {
        running = true;
        start_.store(start_state::under_way, std::memory_order_relaxed);
    }
    bool end_start() noexcept
    {
        return start_.exchange(start_state::over, std::memory_order_acq_rel) !=
               start_state::handler_back;
    }
    // The handler was destroyed. Returns true if the initiating function is still running, and
    // therefore handles this.
    bool give_back() noexcept
    {
        start_state expected = start_state::under_way;
        return start_.compare_exchange_strong(expected, start_state::handler_back,
                                              std::memory_order_acq_rel);
    }

    // Returns the result and ends the operation, or returns nothing if there is no result yet.
    box_type take()
    {
        if (!running || (!result && !thrown))
            return {};
        end();
        if (std::exception_ptr failed = std::exchange(thrown, nullptr)) {
            if constexpr (result_traits<Signature>::can_make_failure)
                result.emplace(result_traits<Signature>::from_failure(std::move(failed)));
        }
        return take_from(result);
    }

    void end() noexcept
    {
        running = false;
        signal.slot().clear(); // the cancellation handler refers to the ended operation
    }

    void cancel(asio::cancellation_type_t type)
    {
        if (running && !result && !thrown)
            signal.emit(type);
    }

private:
    enum class start_state { under_way, handler_back, over };

    std::atomic<start_state> start_{start_state::over};
};

} // namespace turnstile::inline v0_1::detail
