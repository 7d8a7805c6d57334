// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/call/results_box.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <exception>
#include <utility>

namespace turnstile::inline v0_1::detail {

// One operation run by a supervisor.
template <class Signature>
class supervised_operation {
public:
    using result_type = typename result_traits<Signature>::tuple;
    using box_type = results_box<result_type>;

    asio::cancellation_signal signal;
    box_type result;
    std::exception_ptr thrown; // instead of a result: by its initiation, or by moving the result
    bool running = false;

    // Between these two it is initiated. False if its handler was destroyed meanwhile.
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
    // Its handler is destroyed. True if whoever is starting the operation sees to the rest.
    bool give_back() noexcept
    {
        start_state expected = start_state::under_way;
        return start_.compare_exchange_strong(expected, start_state::handler_back,
                                              std::memory_order_acq_rel);
    }

    // Its result, once it has one; then it is over.
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
        signal.slot().clear(); // what it left there is about an operation that is gone
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
