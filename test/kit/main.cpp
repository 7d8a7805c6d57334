// SPDX-License-Identifier: BSL-1.0
// main() of every test program, and the definition of Boost.Test if it is used header-only.

#include "kit/watchdog.hpp"

#define BOOST_TEST_MODULE turnstile
#ifdef TURNSTILE_TEST_HEADER_ONLY
#    include <boost/test/included/unit_test.hpp>
#else
#    include <boost/test/unit_test.hpp>
#endif

#include <boost/test/framework.hpp>
#include <boost/test/results_collector.hpp>
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>

#include <iostream>
#include <string>

namespace {

// Lists the failed cases at the end, each with the command that repeats it.
struct failed_cases {
    ~failed_cases()
    {
        printer p;
        boost::unit_test::traverse_test_tree(boost::unit_test::framework::master_test_suite(), p);
        std::cout.flush();
    }

private:
    struct printer : boost::unit_test::test_tree_visitor {
        void visit(const boost::unit_test::test_case& test) override
        {
            const auto& results = boost::unit_test::results_collector.results(test.p_id);
            if (!test.is_enabled() || results.passed() || results.p_skipped)
                return;
            const std::string name = test.full_name();
            std::cout << "FAILED " << name
                      << "  (again: " << boost::unit_test::framework::master_test_suite().argv[0]
                      << " --run_test='" << name << "')\n";
        }
    };
};

struct watched_cases {
    watched_cases() { kit::watch_cases(); }
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(watched_cases);
BOOST_TEST_GLOBAL_FIXTURE(failed_cases);
