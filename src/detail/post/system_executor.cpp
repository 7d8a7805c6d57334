// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/serial_executor.hpp>
#include <turnstile/detail/post/system_executor.hpp>

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>

#include <typeinfo>

namespace turnstile::inline v0_1::detail {
namespace {

namespace execution = asio::execution;

// Whether `type` is that of a system executor with this blocking property.
template <class Blocking>
bool is_system_executor_with(Blocking blocking, const std::type_info& type) noexcept
{
    const auto fork = asio::require(asio::system_executor(), blocking);
    const auto continuation = asio::require(fork, execution::relationship.continuation);
    return type == typeid(fork) || type == typeid(continuation);
}

// Whether `type` is the type_info of one of these executors. Another type_info of the same type, as
// shared libraries may have, is not recognised.
template <class... Executors>
bool is_known_as(const std::type_info& type) noexcept
{
    return ((&type == &typeid(Executors)) || ...);
}

} // namespace

// The usual executors are recognised without comparing names.
bool is_system_executor_type(const std::type_info& type) noexcept
{
    if (is_known_as<io_executor, serial_executor<io_executor>, pool_executor,
                    serial_executor<pool_executor>, asio::strand<io_executor>,
                    asio::strand<pool_executor>>(type))
        return false;
    return is_system_executor_with(execution::blocking.possibly, type) ||
           is_system_executor_with(execution::blocking.never, type) ||
           is_system_executor_with(execution::blocking.always, type);
}

} // namespace turnstile::inline v0_1::detail
