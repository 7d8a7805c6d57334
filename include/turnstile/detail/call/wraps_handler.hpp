// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <boost/asio/associator.hpp>

#include <concepts>

namespace turnstile::inline v0_1::detail {

// A handler made from another, get(), that shares the executor, the allocator, the cancellation
// slot and whatever else is associated with that one.
template <class T>
concept wraps_handler = requires(const T& t)
{
    {
        t.get()
        } -> std::same_as<const typename T::wrapped_handler&>;
};

} // namespace turnstile::inline v0_1::detail

template <template <class, class> class Associator, turnstile::detail::wraps_handler Wrapper,
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
