// SPDX-License-Identifier: BSL-1.0
// Completion handlers that wrap another completion handler. A type that models handler_wrapper has
// get() and wrapped_handler, and Asio then finds the executor, the allocator, the cancellation slot
// and every other associated object of the wrapped handler. The handlers that run operations
// (handler_loan.hpp, inspecting_handler.hpp, nothrow_results.hpp) are wrappers. The header is small
// because each of them needs it.
//
// Invariant: a wrapper has the same associated objects as the handler that it wraps, unless it
// declares its own.
#pragma once

#include <boost/asio/associator.hpp>

#include <concepts>

namespace turnstile::inline v0_1::detail {

template <class T>
concept handler_wrapper = requires(const T& t)
{
    {
        t.get()
        } -> std::same_as<const typename T::wrapped_handler&>;
};

} // namespace turnstile::inline v0_1::detail

template <template <class, class> class Associator, turnstile::detail::handler_wrapper Wrapper,
          class Default>
struct boost::asio::associator<Associator, Wrapper, Default>
    : Associator<typename Wrapper::wrapped_handler, Default> {
    using wrapped = Associator<typename Wrapper::wrapped_handler, Default>;

    static typename wrapped::type get(const Wrapper& w) noexcept { return wrapped::get(w.get()); }
    static decltype(auto) get(const Wrapper& w, const Default& d) noexcept
    {
        return wrapped::get(w.get(), d);
    }
};
