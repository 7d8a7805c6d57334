// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/event.hpp>
#include <turnstile/work/select.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

namespace {

namespace asio = boost::asio;
namespace ts = turnstile;

BOOST_AUTO_TEST_SUITE(race_cancellation)

BOOST_AUTO_TEST_CASE(a_cancellation_inside_an_initiating_function_keeps_its_type)
{
    asio::io_context io;
    asio::cancellation_signal signal;
    auto received = asio::cancellation_type::none;
    std::function<void()> end;
    const auto records_types = [&](auto token) {
        const auto initiation = [&](auto handler) {
            auto slot = asio::get_associated_cancellation_slot(handler);
            const auto kept = std::make_shared<decltype(handler)>(std::move(handler));
            end = [kept] { std::move (*kept)(asio::error::operation_aborted); };
            slot.assign([&](asio::cancellation_type_t type) { received |= type; });
        };
        return asio::async_initiate<decltype(token), void(ts::error_code)>(initiation, token);
    };
    const auto cancels = [&](auto token) {
        const auto initiation = [&](auto handler) {
            signal.emit(asio::cancellation_type::total);
            asio::post(io, [h = std::move(handler)]() mutable {
                std::move(h)(asio::error::operation_aborted);
            });
        };
        return asio::async_initiate<decltype(token), void(ts::error_code)>(initiation, token);
    };
    bool is_aborted = false;
    const auto completes = [&](std::exception_ptr e, auto) {
        is_aborted = ts::failure(std::move(e)).is_cancelled();
    };
    ts::async_select(io.get_executor(), records_types, cancels,
                     asio::bind_cancellation_slot(signal.slot(), completes));
    io.poll();
    BOOST_TEST((received == asio::cancellation_type::total));
    asio::post(io, std::exchange(end, nullptr));
    io.run();
    BOOST_TEST(is_aborted);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
