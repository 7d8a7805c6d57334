#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_context.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::detail {

// The system context runs what is posted on threads of its own, which nobody asked for: a
// future's promise is rather set where the operation completes. Those threads are started as
// soon as an executor is asked for that context, so this must be told without asking.

template <class Executor>
using context_of =
    std::decay_t<decltype(asio::query(std::declval<const Executor&>(), asio::execution::context))>;

template <class Executor>
concept strand_executor = requires(const Executor& e)
{
    e.get_inner_executor();
};

// Whether an executor of this type may turn out to be the system's. A strand is where somebody
// wants to be, whatever it is on.
template <class Executor>
constexpr bool may_be_system_executor =
    std::is_same_v<context_of<Executor>, asio::execution_context> ||
    std::is_same_v<context_of<Executor>, asio::system_context>;
template <strand_executor Executor>
inline constexpr bool may_be_system_executor<Executor> = false;

TURNSTILE_EXPORT bool is_system_executor(const asio::any_io_executor& executor) noexcept;

// Of a type that does not tell, such as a future's, it is taken for one.
template <class Executor>
constexpr bool is_system_executor(const Executor&) noexcept
{
    return may_be_system_executor<Executor>;
}

} // namespace turnstile::detail
