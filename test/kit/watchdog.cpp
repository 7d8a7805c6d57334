// SPDX-License-Identifier: BSL-1.0
#include "kit/watchdog.hpp"

#if __has_include(<unistd.h>)

#    include <boost/test/framework.hpp>
#    include <boost/test/tree/observer.hpp>
#    include <boost/test/tree/test_unit.hpp>
#    include <boost/test/unit_test.hpp>

#    include <array>
#    include <csignal>
#    include <cstddef>
#    include <cstdlib>
#    include <string>
#    include <unistd.h>

namespace {

namespace ut = boost::unit_test;

constexpr int exit_code = 124; // the same as timeout(1)

// The text that the signal handler prints. Written only while the timer is off.
std::array<char, 1024> message;
std::size_t message_size = 0;

extern "C" void end_hung_case(int)
{
    const auto written = ::write(STDERR_FILENO, message.data(), message_size);
    ::_exit(written < 0 ? exit_code + 1 : exit_code);
}

class watchdog : public ut::test_observer {
public:
    explicit watchdog(unsigned seconds) : seconds_(seconds)
    {
        std::signal(SIGALRM, end_hung_case);
        ut::framework::register_observer(*this);
    }

private:
    void test_unit_start(const ut::test_unit& unit) override
    {
        if (unit.p_type != ut::TUT_CASE)
            return;
        const std::string name = unit.full_name();
        const std::string text = "\nFAILED " + name + ": it hangs, and was ended after " +
                                 std::to_string(seconds_) +
                                 " s  (again: " + ut::framework::master_test_suite().argv[0] +
                                 " --run_test='" + name + "')\n";
        message_size = text.copy(message.data(), message.size());
        ::alarm(seconds_);
    }
    void test_unit_finish(const ut::test_unit& unit, unsigned long) override
    {
        if (unit.p_type == ut::TUT_CASE)
            ::alarm(0);
    }

    unsigned seconds_;
};

unsigned time_for_a_case()
{
    if (const char* chosen = std::getenv("TURNSTILE_WATCHDOG"))
        return static_cast<unsigned>(std::stoul(chosen));
#    if TURNSTILE_SANITIZED
    return 300;
#    else
    return 120;
#    endif
}

} // namespace

void kit::watch_cases()
{
    if (const unsigned seconds = time_for_a_case(); seconds != 0)
        static watchdog dog(seconds);
}

#else

void kit::watch_cases() {}

#endif
