// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/default_token.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <type_traits>

namespace {

namespace asio = boost::asio;

struct executor_with_own_token : asio::any_io_executor {
    using default_completion_token_type = asio::use_future_t<>;
};

BOOST_AUTO_TEST_CASE(the_default_token_is_the_executors_own_or_a_coroutine)
{
    BOOST_TEST((
        std::is_same_v<turnstile::default_token_t<executor_with_own_token>, asio::use_future_t<>>));
    BOOST_TEST((std::is_same_v<turnstile::default_token_t<asio::any_io_executor>,
                               asio::use_awaitable_t<asio::any_io_executor>>));
    BOOST_TEST((std::is_same_v<turnstile::default_token_t<asio::io_context::executor_type>,
                               asio::use_awaitable_t<asio::io_context::executor_type>>));
}

} // namespace
