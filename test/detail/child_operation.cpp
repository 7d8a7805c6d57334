// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/strand_lease.hpp>

#include <boost/asio.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <variant>

namespace asio = boost::asio;
namespace ts = turnstile;
namespace detail = turnstile::detail;
using ts::error_code;

namespace {

// A parent of one child, which records how the child has ended. Its lease is outstanding work, so
// the tests call poll() instead of run().
template <class Signature>
class parent_frame : public boost::intrusive_ref_counter<parent_frame<Signature>> {
public:
    using child_type = detail::child_operation<Signature>;
    using pointer = boost::intrusive_ptr<parent_frame>;

    explicit parent_frame(asio::any_io_executor executor) : lease_(executor) {}

    const auto& lease() const noexcept { return lease_; }
    asio::recycling_allocator<void> get_allocator() const noexcept { return {}; }
    void complete(child_type& c)
    {
        BOOST_TEST((&c == &child));
        BOOST_TEST(lease_.is_current());
        ++completed;
    }
    void drop(child_type&) noexcept { ++*drops; }

    template <class Op>
    static pointer start(asio::io_context& io, Op op)
    {
        pointer parent(new parent_frame(io.get_executor()));
        asio::dispatch(parent->lease().executor(),
                       [parent, o = std::optional(std::move(op))]() mutable {
                           detail::start_child(o, parent, parent->child);
                       });
        return parent;
    }

    child_type child;
    int completed = 0;
    std::shared_ptr<int> drops = std::make_shared<int>(0);

private:
    detail::strand_lease<asio::any_io_executor> lease_;
};

template <class Op>
auto start(asio::io_context& io, Op op)
{
    auto made = detail::as_operation(std::move(op));
    return parent_frame<ts::operation_signature_t<decltype(made)>>::start(io, std::move(made));
}

asio::awaitable<int> three()
{
    co_await asio::post(asio::use_awaitable);
    co_return 3;
}

} // namespace

BOOST_AUTO_TEST_SUITE(child_operation_)

static_assert(std::is_same_v<detail::result_value_t<void(error_code)>, std::monostate>);
static_assert(std::is_same_v<detail::result_value_t<void(error_code, int)>, int>);
static_assert(std::is_same_v<detail::result_value_t<void(std::exception_ptr, int, char)>,
                             std::tuple<int, char>>);
static_assert(std::is_same_v<detail::result_value_t<void(int)>, int>);
static_assert(std::is_same_v<detail::result_value_t<void()>, std::monostate>);

BOOST_AUTO_TEST_CASE(an_awaitable_runs_and_completes_on_the_strand)
{
    asio::io_context io;
    const auto parent = start(io, three());
    io.poll();
    BOOST_TEST(parent->completed == 1);
    BOOST_TEST(!parent->child.exception());
    BOOST_TEST(parent->child.take_value() == 3);
}

BOOST_AUTO_TEST_CASE(a_function_and_a_token_operation_run_as_well)
{
    asio::io_context io;
    const auto function = start(io, [] { return three(); });
    const auto token = start(io, asio::post(io, asio::deferred));
    io.poll();
    BOOST_TEST(function->child.take_value() == 3);
    BOOST_TEST(token->completed == 1);
    BOOST_TEST((token->child.take_value() == std::monostate()));
}

BOOST_AUTO_TEST_CASE(an_error_code_is_reported_as_a_system_error)
{
    asio::io_context io;
    asio::steady_timer timer(io, asio::steady_timer::time_point::max());
    const auto parent = start(io, timer.async_wait(asio::deferred));
    io.poll();
    BOOST_TEST(parent->completed == 0);
    asio::dispatch(parent->lease().executor(),
                   [&] { parent->child.cancel(asio::cancellation_type::terminal); });
    io.poll();
    BOOST_TEST(parent->completed == 1);
    BOOST_CHECK_EXCEPTION(
        std::rethrow_exception(parent->child.exception()), ts::system_error,
        [](const ts::system_error& e) { return e.code() == asio::error::operation_aborted; });
}

BOOST_AUTO_TEST_CASE(an_initiating_function_that_throws_completes_the_child)
{
    asio::io_context io;
    const auto throwing = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto) { throw std::runtime_error("no"); }, token);
    };
    const auto parent = start(io, throwing);
    io.poll();
    BOOST_TEST(parent->completed == 1);
    BOOST_TEST(*parent->drops == 0);
    BOOST_CHECK_THROW(std::rethrow_exception(parent->child.exception()), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(an_initiating_function_that_throws_after_it_has_passed_the_handler_on)
{
    asio::io_context io;
    const auto throwing = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [&](auto handler) {
                asio::post(io, [h = std::move(handler)]() mutable { std::move(h)(error_code()); });
                throw std::runtime_error("late");
            },
            token);
    };
    const auto parent = start(io, throwing);
    io.poll();
    BOOST_TEST(parent->completed == 1); // off the strand, and brought to it
    BOOST_TEST(!parent->child.exception());
}

BOOST_AUTO_TEST_CASE(a_handler_that_is_destroyed_is_a_drop)
{
    asio::io_context io;
    const auto forgetful = [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>([](auto) {}, token);
    };
    const auto at_once = start(io, forgetful);
    io.poll();
    BOOST_TEST(at_once->completed == 0);
    BOOST_TEST(*at_once->drops == 1);
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_drops_its_children)
{
    std::optional<asio::io_context> io(std::in_place);
    auto parent = start(*io, [](auto token) {
        return asio::async_initiate<decltype(token), void(error_code)>(
            [](auto handler) {
                const auto timer = std::make_shared<asio::steady_timer>(
                    handler.get_executor(), asio::steady_timer::time_point::max());
                timer->async_wait(
                    [timer, h = std::move(handler)](error_code ec) mutable { std::move(h)(ec); });
            },
            token);
    });
    io->poll();
    const auto drops = parent->drops;
    // The parent has a strand of the context, and must be destroyed before it: only the handler
    // keeps it.
    parent.reset();
    io.reset();
    BOOST_TEST(*drops == 1);
}

BOOST_AUTO_TEST_SUITE_END()
