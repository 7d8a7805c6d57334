// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace {

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(buffer_allocator)

BOOST_AUTO_TEST_CASE(an_object_that_fits_is_placed_in_the_buffer_and_a_larger_one_on_the_heap)
{
    struct large {
        char bytes[100];
    };
    alignas(std::max_align_t) std::byte buffer[16];
    turnstile::detail::buffer_allocator<int, 16> fits(buffer);
    int* p = fits.allocate(1);
    BOOST_TEST(static_cast<void*>(p) == static_cast<void*>(buffer));
    fits.deallocate(p, 1);
    turnstile::detail::buffer_allocator<large, 16> rest(fits);
    large* q = rest.allocate(1);
    BOOST_TEST(static_cast<void*>(q) != static_cast<void*>(buffer));
    rest.deallocate(q, 1);
    BOOST_TEST((rest == fits));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
