// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/timeout_supervisor.hpp>

#include <cstdint>
#include <string>

namespace turnstile::inline v0_1::detail {
namespace {

// The duration in the largest unit that yields a whole number.
std::string text_of(nanoseconds duration)
{
    std::int64_t count = duration.count();
    const char* unit = "ns";
    for (const char* const larger : {"us", "ms", "s"}) {
        if (count % 1000 != 0 || count == 0)
            break;
        count /= 1000;
        unit = larger;
    }
    return std::to_string(count) + unit;
}

} // namespace

std::exception_ptr timeout_name::exception() const noexcept
{
    try {
        std::string text = limit;
        if (duration != nanoseconds::max())
            text += " of " + text_of(duration);
        return std::make_exception_ptr(system_error(errc::timed_out, text));
    } catch (...) { // no memory for the text
        return std::current_exception();
    }
}

} // namespace turnstile::inline v0_1::detail
