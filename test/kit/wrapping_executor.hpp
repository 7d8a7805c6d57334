// SPDX-License-Identifier: BSL-1.0
// An executor around another, to interfere with what it is given.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <new>
#include <type_traits>
#include <utility>

namespace kit {

// Whatever is made of it is wrapped as well. Extra may have execute(inner, f); else it is just
// carried along.
template <class Inner, class Extra>
struct wrapping_executor {
    Inner inner;
    Extra extra;

    template <class P>
    auto require(const P& p) const -> wrapping_executor<
        std::decay_t<decltype(boost::asio::require(std::declval<const Inner&>(), p))>, Extra>
    {
        return {boost::asio::require(inner, p), extra};
    }
    template <class P>
    auto prefer(const P& p) const -> wrapping_executor<
        std::decay_t<decltype(boost::asio::prefer(std::declval<const Inner&>(), p))>, Extra>
    {
        return {boost::asio::prefer(inner, p), extra};
    }
    template <class P>
    auto query(const P& p) const noexcept
        -> decltype(boost::asio::query(std::declval<const Inner&>(), p))
    {
        return boost::asio::query(inner, p);
    }
    template <class F>
    void execute(F f) const
    {
        if constexpr (requires { extra.execute(inner, std::move(f)); })
            extra.execute(inner, std::move(f));
        else
            inner.execute(std::move(f));
    }

    friend bool operator==(const wrapping_executor& a, const wrapping_executor& b) noexcept
    {
        return a.inner == b.inner;
    }
};

// For one that has no memory for what it is given, if told so.
struct refusal {
    const bool* refuses;

    template <class Inner, class F>
    void execute(const Inner& inner, F f) const
    {
        if (*refuses)
            throw std::bad_alloc();
        inner.execute(std::move(f));
    }
};

template <class Inner, class Extra>
wrapping_executor(Inner, Extra) -> wrapping_executor<Inner, Extra>;

} // namespace kit
