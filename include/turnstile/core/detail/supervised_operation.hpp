#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/operation_result.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

namespace turnstile::detail {

// One operation run by a supervisor.
template <class Signature>
class supervised_operation {
public:
    using result_type = typename result_traits<Signature>::tuple;

    asio::cancellation_signal signal;
    std::optional<result_type> result;
    std::exception_ptr not_started; // what its initiation threw
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
    std::optional<result_type> take()
    {
        if (!running || (!result && !not_started))
            return std::nullopt;
        running = false;
        signal.slot().clear(); // what it left there is about an operation that is gone
        if (not_started) {
            if constexpr (result_traits<Signature>::can_make_failure)
                result = result_traits<Signature>::from_failure(std::move(not_started));
            not_started = nullptr;
        }
        return std::exchange(result, std::nullopt);
    }

    void cancel(asio::cancellation_type_t type)
    {
        if (running && !result && !not_started)
            signal.emit(type);
    }

private:
    enum class start_state { under_way, handler_back, over };

    std::atomic<start_state> start_{start_state::over};
};

} // namespace turnstile::detail
