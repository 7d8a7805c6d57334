// SPDX-License-Identifier: BSL-1.0
// Heap bytes of an object, of a waiting coroutine and of a waiting callback.
#include "support/enroll.hpp"
#include "support/workloads.hpp"

#include <optional>

namespace bench {
namespace {

constexpr std::size_t many = 10'000;

// The heap bytes that each call of `make` leaves allocated.
template <class Make>
double bytes_each(Make make)
{
    make(); // allocates what only the first call needs
    const std::size_t before = heap::bytes_in_use();
    for (std::size_t i = 0; i != many; ++i)
        make();
    return static_cast<double>(heap::bytes_in_use() - before) / many;
}

template <class Object>
double bytes_of_object()
{
    asio::io_context context;
    std::vector<std::optional<Object>> objects(many + 1);
    auto next = objects.begin();
    return sizeof(Object) + bytes_each([&] { (next++)->emplace(context); });
}

// poll() starts each coroutine at once, so that no posted start is counted.
template <class Wait>
double bytes_of_coroutine(asio::io_context& context, Wait wait)
{
    const auto run = [&]() -> asio::awaitable<void> { co_await wait(); };
    return bytes_each([&] {
        asio::co_spawn(context, run(), asio::detached);
        context.poll();
    });
}

template <class Event>
double bytes_of_waiting_coroutine()
{
    asio::io_context context;
    Event event(context);
    const double bytes = bytes_of_coroutine(context, [&] { return event.wait(); });
    event.wake_all();
    context.run();
    return bytes;
}

double bytes_of_parked_coroutine()
{
    asio::io_context context;
    parking lot(many + 1);
    const double bytes = bytes_of_coroutine(context, [&] { return lot.park(); });
    lot.resume_all();
    context.run();
    return bytes;
}

template <class Event>
double bytes_of_waiting_callback()
{
    asio::io_context context;
    Event event(context);
    const double bytes = bytes_each([&] { event.wait([](const error_code&) {}); });
    event.wake_all();
    context.run();
    return bytes;
}

template <class Gate, class Event>
void enroll_as(const std::string& competitor)
{
    enroll_bytes("bytes_mutex/" + competitor, &bytes_of_object<Gate>);
    enroll_bytes("bytes_event/" + competitor, &bytes_of_object<Event>);
    enroll_bytes("bytes_coroutine/" + competitor, &bytes_of_waiting_coroutine<Event>);
    enroll_bytes("bytes_callback/" + competitor, &bytes_of_waiting_callback<Event>);
}

[[maybe_unused]] const bool enrolled = [] {
    enroll_as<turnstile_mutex<turnstile::mutex>, turnstile_event<turnstile::event>>("ours");
    enroll_as<turnstile_mutex<turnstile::local::mutex>, turnstile_event<turnstile::local::event>>(
        "local");
    enroll_as<channel_gate<channel>, channel_event<channel>>("channel");
    enroll_as<channel_gate<concurrent_channel>, channel_event<concurrent_channel>>(
        "concurrent_channel");
    enroll_as<timer_gate, timer_event>("timer");
    enroll_bytes("bytes_coroutine/floor", &bytes_of_parked_coroutine);
    return true;
}();

} // namespace
} // namespace bench
