// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/system_executor.hpp>

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/system_executor.hpp>

#include <typeinfo>

namespace turnstile::inline v0_1::detail {
namespace {

namespace execution = asio::execution;

template <class Blocking>
bool is_the_one_for(Blocking blocking, const std::type_info& type) noexcept
{
    const auto fork = asio::require(asio::system_executor(), blocking);
    const auto continuation = asio::require(fork, execution::relationship.continuation);
    return type == typeid(fork) || type == typeid(continuation);
}

} // namespace

bool is_system_executor_type(const std::type_info& type) noexcept
{
    return is_the_one_for(execution::blocking.possibly, type) ||
           is_the_one_for(execution::blocking.never, type) ||
           is_the_one_for(execution::blocking.always, type);
}

} // namespace turnstile::inline v0_1::detail
