// main() of every test program, and with the header-only form all of Boost.Test.

#define BOOST_TEST_MODULE turnstile
#ifdef TURNSTILE_TEST_HEADER_ONLY
#    include <boost/test/included/unit_test.hpp>
#else
#    include <boost/test/unit_test.hpp>
#endif
