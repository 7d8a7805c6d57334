// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/shared_value.hpp>
#include <turnstile/channel/watch.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using value = turnstile::shared_value<std::string>;

static_assert(std::is_nothrow_default_constructible_v<value>);
static_assert(std::is_copy_constructible_v<value>);
static_assert(std::is_nothrow_move_constructible_v<value>);
static_assert(std::is_same_v<decltype(*std::declval<value>()), const std::string&>);

BOOST_AUTO_TEST_SUITE(shared_value)

BOOST_AUTO_TEST_CASE(an_empty_one_has_no_value)
{
    const value v;
    BOOST_TEST(!v);
    BOOST_TEST(v.get() == nullptr);
}

BOOST_AUTO_TEST_CASE(copies_share_the_value_and_the_last_frees_it)
{
    asio::io_context io;
    std::weak_ptr<int> life;
    turnstile::shared_value<std::shared_ptr<int>> last;
    {
        turnstile::watch<std::shared_ptr<int>> w(io, std::make_shared<int>(3));
        life = *w.get();
        last = w.get();
        auto other = last;
        BOOST_TEST(other.get() == last.get());
        BOOST_TEST(**other == 3);
    } // the channel is destroyed
    BOOST_TEST(life.use_count() == 1);
    auto moved = std::move(last);
    BOOST_TEST(!last); // NOLINT: the moved-from state is tested
    moved = {};
    BOOST_TEST(life.expired());
}

BOOST_AUTO_TEST_CASE(can_be_made_without_a_channel)
{
    const auto made = turnstile::shared_value<std::string>::make(3U, 'a');
    BOOST_TEST(*made == "aaa");
}

struct alignas(64) wide {
    char bytes[64];
};

BOOST_AUTO_TEST_CASE(values_have_their_own_alignment)
{
    asio::io_context io;
    turnstile::local::watch<wide> w(io, wide());
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(w.get().get()) % 64 == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
