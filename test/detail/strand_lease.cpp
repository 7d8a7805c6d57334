// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/strand_lease.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>

namespace asio = boost::asio;
using turnstile::detail::confined_lease;
using turnstile::detail::strand_lease;

namespace {

// Runs a function on the strand of a lease.
template <class Context, class Lease, class Function>
void run_on(Context& context, Lease& lease, Function function)
{
    asio::dispatch(lease.executor(), function);
    context.restart();
    context.poll(); // a lease is work, so run() would not return
}

} // namespace

BOOST_AUTO_TEST_SUITE(strand_lease_)

BOOST_AUTO_TEST_CASE(two_leases_have_different_strands)
{
    asio::io_context io;
    const strand_lease<asio::any_io_executor> a(io.get_executor());
    const strand_lease<asio::any_io_executor> b(io.get_executor());
    BOOST_TEST((a.executor() != b.executor()));
}

BOOST_AUTO_TEST_CASE(the_strand_of_an_ended_lease_is_used_again)
{
    asio::io_context io;
    std::optional<strand_lease<asio::any_io_executor>> lease(io.get_executor());
    const asio::any_io_executor first = lease->executor();
    lease.reset();
    lease.emplace(io.get_executor());
    BOOST_TEST((lease->executor() == first));
}

// The handler of an ended call may run on its strand, and must not delay the next call.
BOOST_AUTO_TEST_CASE(a_strand_that_is_running_is_used_again_only_afterwards)
{
    asio::io_context io;
    std::optional<strand_lease<asio::any_io_executor>> lease(io.get_executor());
    const asio::any_io_executor first = lease->executor();
    bool ran = false;
    asio::post(first, [&] {
        lease.reset();
        const strand_lease<asio::any_io_executor> meanwhile(io.get_executor());
        BOOST_TEST((meanwhile.executor() != first));
        ran = true;
    });
    io.run();
    BOOST_TEST(ran);
    const strand_lease<asio::any_io_executor> a(io.get_executor());
    const strand_lease<asio::any_io_executor> b(io.get_executor());
    BOOST_TEST((a.executor() == first || b.executor() == first));
}

BOOST_AUTO_TEST_CASE(a_lease_is_outstanding_work)
{
    asio::io_context io;
    std::optional<strand_lease<asio::any_io_executor>> erased(io.get_executor());
    BOOST_TEST(io.poll() == 0u);
    BOOST_TEST(!io.stopped());
    erased.reset();
    std::optional<strand_lease<asio::io_context::executor_type>> typed(io.get_executor());
    io.restart();
    io.poll();
    BOOST_TEST(!io.stopped());
    typed.reset();
    io.poll();
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(the_strand_is_current_inside_and_not_outside)
{
    asio::io_context io;
    const strand_lease<asio::any_io_executor> erased(io.get_executor());
    const strand_lease<asio::io_context::executor_type> typed(io.get_executor());
    BOOST_TEST(!erased.is_current());
    BOOST_TEST(!typed.is_current());
    run_on(io, erased, [&] {
        BOOST_TEST(erased.is_current());
        BOOST_TEST(!typed.is_current());
    });
    run_on(io, typed, [&] { BOOST_TEST(typed.is_current()); });
}

BOOST_AUTO_TEST_CASE(a_strand_is_used_as_it_is)
{
    asio::io_context io;
    const auto strand = asio::make_strand(io);
    const strand_lease<asio::any_io_executor> erased{asio::any_io_executor(strand)};
    BOOST_TEST((erased.executor() == asio::any_io_executor(strand)));
    const strand_lease<asio::strand<asio::io_context::executor_type>> typed(strand);
    BOOST_TEST((typed.executor() == strand));
    const asio::strand<asio::any_io_executor> outer(asio::any_io_executor(io.get_executor()));
    const strand_lease<asio::any_io_executor> nested{asio::any_io_executor(outer)};
    BOOST_TEST((nested.executor() == asio::any_io_executor(outer)));
    run_on(io, nested, [&] { BOOST_TEST(nested.is_current()); });
}

BOOST_AUTO_TEST_CASE(a_confined_lease_is_the_executor_itself)
{
    asio::io_context io;
    const confined_lease<asio::any_io_executor> lease(io.get_executor());
    BOOST_TEST((lease.executor() == asio::any_io_executor(io.get_executor())));
    BOOST_TEST(lease.is_current());
}

BOOST_AUTO_TEST_CASE(each_context_has_strands_of_its_own)
{
    asio::io_context a;
    asio::thread_pool pool(1);
    asio::any_io_executor from_a;
    {
        const strand_lease<asio::any_io_executor> lease(a.get_executor());
        from_a = lease.executor();
    }
    asio::io_context b;
    const strand_lease<asio::any_io_executor> from_b(b.get_executor());
    const strand_lease<asio::any_io_executor> from_pool(pool.get_executor());
    BOOST_TEST((from_a != from_b.executor()));
    BOOST_TEST((from_pool.executor() != from_b.executor()));
}

BOOST_AUTO_TEST_SUITE_END()
