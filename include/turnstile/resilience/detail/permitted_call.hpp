#pragma once

#include <turnstile/core/detail/operation_start.hpp>
#include <turnstile/core/detail/start_wait.hpp>
#include <turnstile/core/operation.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// What a limiter calls when it has let an operation go, or has not.
template <class Op, class Executor, class Handler>
struct permitted_call {
    Op op;
    Executor executor;
    Handler handler;

    void operator()(const error_code& ec)
    {
        if (ec)
            std::apply(std::move(handler), operation_result<Op>::from_error(ec));
        else
            detail::start(std::move(op), executor, std::move(handler));
    }
};

// Runs an operation once an Ask is granted. If that is so at once it is started right away: then
// nobody can come between the permit and its use.
template <class Ask>
class initiate_permitted {
public:
    using executor_type = typename Ask::executor_type;

    explicit initiate_permitted(Ask ask) : ask_(std::move(ask)) {}

    executor_type get_executor() const noexcept { return ask_.executor(); }

    template <class Handler, class Op>
    void operator()(Handler&& handler, Op&& op)
    {
        using call = permitted_call<std::decay_t<Op>, executor_type, std::decay_t<Handler>>;
        const verdict now = ask_.try_now();
        if (!now.is_granted())
            return start_operation(
                ask_, now,
                call{std::forward<Op>(op), ask_.executor(), std::forward<Handler>(handler)},
                handler_memory());
        try {
            detail::start(std::decay_t<Op>(std::forward<Op>(op)), ask_.executor(),
                          std::decay_t<Handler>(std::forward<Handler>(handler)));
        } catch (...) {
            ask_.give_back();
            throw;
        }
    }

private:
    Ask ask_;
};

template <class Ask, operation Op, class Token>
auto call_when_permitted(Ask ask, Op&& op, Token&& token)
{
    return asio::async_initiate<Token, operation_signature_t<Op>>(
        initiate_permitted<Ask>(std::move(ask)), token, std::forward<Op>(op));
}

} // namespace turnstile::detail

// The handler's executor, allocator and slot are the wait's, too.
template <template <class, class> class Associator, class Op, class Executor, class Handler,
          class Default>
struct boost::asio::associator<Associator, turnstile::detail::permitted_call<Op, Executor, Handler>,
                               Default> : Associator<Handler, Default> {
    using call = turnstile::detail::permitted_call<Op, Executor, Handler>;

    static typename Associator<Handler, Default>::type get(const call& c) noexcept
    {
        return Associator<Handler, Default>::get(c.handler);
    }
    static decltype(auto) get(const call& c, const Default& d) noexcept
    {
        return Associator<Handler, Default>::get(c.handler, d);
    }
};
