// SPDX-License-Identifier: BSL-1.0
// An executor around another one, which can intercept the functions that it executes.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <new>
#include <type_traits>
#include <utility>

namespace kit {

// The results of require() and prefer() are wrapped as well. Extra may have execute(inner, f);
// otherwise it is only stored, for executors that own something.
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

// For an executor that throws std::bad_alloc instead of executing, while *refuses is true.
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

template <class Context>
auto refusing_executor(Context& context, const bool& refuses)
{
    return wrapping_executor{context.get_executor(), refusal{&refuses}};
}

} // namespace kit
