// SPDX-License-Identifier: BSL-1.0
// The completion token of cancellation_source::bind. It wraps the initiation of any initiating
// function, so that its operation is started with a bound_handler, whose cancellation slot is that
// of a bound_operation. The wrapped initiation has an executor if the original has one.
//
// Invariant: an operation that is refused, because the source is cancelled, has not started, and
// completes by a post.
#pragma once

#include <turnstile/detail/call/handler_wrapper.hpp>
#include <turnstile/detail/call/operation_result.hpp>
#include <turnstile/detail/post/handler_executor.hpp>
#include <turnstile/work/detail/cancellation_scope.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Executor, class Threading, class Token>
struct bind_token {
    Executor executor; // of the source
    cancellation_scope_ptr<Threading> scope;
    Token token;
};

// The reference of a completion handler to its bound_operation. Ends the binding.
template <class Threading>
class operation_binding {
public:
    explicit operation_binding(bound_operation<Threading>& op) noexcept : op_(&op) {}
    operation_binding(operation_binding&& other) noexcept : op_(std::exchange(other.op_, nullptr))
    {
    }
    operation_binding& operator=(operation_binding&&) = delete;
    ~operation_binding() { end(); }

    TURNSTILE_HOT void end() noexcept
    {
        if (op_)
            std::exchange(op_, nullptr)->complete();
    }
    asio::cancellation_slot slot() const noexcept
    {
        return op_ ? op_->slot() : asio::cancellation_slot();
    }

private:
    bound_operation<Threading>* op_;
};

// The handler in the operation's own slot.
template <class Threading>
class own_slot_handler {
public:
    explicit own_slot_handler(bound_operation<Threading>& op) noexcept : op_(op)
    {
        op_.add_reference();
    }
    own_slot_handler(const own_slot_handler&) = delete;
    own_slot_handler& operator=(const own_slot_handler&) = delete;
    ~own_slot_handler() { op_.drop_reference(); }

    void operator()(asio::cancellation_type_t type) const { op_.cancel_here(type); }

private:
    bound_operation<Threading>& op_;
};

template <class Handler, class Threading>
class bound_handler {
public:
    using wrapped_handler = Handler;
    using cancellation_slot_type = asio::cancellation_slot;

    bound_handler(Handler&& handler, operation_binding<Threading>&& binding)
        : handler_(std::move(handler)), binding_(std::move(binding))
    {
    }

    template <class... Args>
    void operator()(Args&&... args)
    {
        binding_.end();
        std::move(handler_)(std::forward<Args>(args)...);
    }

    const Handler& get() const noexcept { return handler_; }
    cancellation_slot_type get_cancellation_slot() const noexcept { return binding_.slot(); }

private:
    Handler handler_;
    operation_binding<Threading> binding_;
};

// The reference of the initiating function.
template <class Threading>
class initiation_guard {
public:
    explicit initiation_guard(bound_operation<Threading>& op) noexcept : op_(op) {}
    initiation_guard(const initiation_guard&) = delete;
    initiation_guard& operator=(const initiation_guard&) = delete;
    ~initiation_guard() { op_.end_initiation(); }

private:
    bound_operation<Threading>& op_;
};

// The executor of an operation, as its signal needs it. The usual case, a coroutine on an
// io_context, comes first: executor_for() would compare its type with further ones.
template <class Handler, class Executor>
posting_executor emission_executor(const Handler& handler, const Executor& otherwise)
{
    if constexpr (std::is_same_v<asio::associated_executor_t<Handler, no_executor>,
                                 asio::any_io_executor>) {
        const auto& own = asio::get_associated_executor(handler);
        if (const auto* io = own.template target<io_executor>()) [[likely]]
            return posting_executor(*io);
    }
    return posting_executor(executor_for(handler, otherwise));
}

// An initiation that binds the operation that `initiation` starts. Home provides the executor for
// handlers without one: source_home that of the source, initiation_home that of the initiation.
template <class Signature, class Threading, class Home>
struct bound_initiation : Home {
    cancellation_scope_ptr<Threading> scope;

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) &&
    {
        using handler_type = std::decay_t<Handler>;
        using scope_type = cancellation_scope<Threading>;
        using traits = result_traits<Signature>;
        constexpr auto rule = traits::can_make_failure ? scope_type::if_cancelled::refuse
                                                       : scope_type::if_cancelled::start_cancelled;
        posting_executor emits_on = emission_executor(handler, this->home());
        auto* const op = scope_type::bind(std::move(scope), rule);
        if constexpr (traits::can_make_failure) {
            if (!op) {
                const auto where = executor_for(handler, this->home());
                return post_handler(handler_type(std::forward<Handler>(handler)), where,
                                    traits::from_error(asio::error::operation_aborted));
            }
        }
        const initiation_guard guard(*op);
        operation_binding binding(*op);
        op->set_executor(std::move(emits_on));
        auto own_slot = asio::get_associated_cancellation_slot(handler);
        if (own_slot.is_connected())
            own_slot.template emplace<own_slot_handler<Threading>>(*op);
        std::move(this->initiation)(
            bound_handler<handler_type, Threading>(handler_type(std::forward<Handler>(handler)),
                                                   std::move(binding)),
            std::forward<Args>(args)...);
    }
    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const&
    {
        bound_initiation(*this).template operator()<Handler, Args...>(
            std::forward<Handler>(handler), std::forward<Args>(args)...);
    }
};

template <class Executor, class Initiation>
struct source_home {
    Executor executor;
    Initiation initiation;

    const Executor& home() const noexcept { return executor; }
};

// Keeps the executor_type of the initiation.
template <class Executor, class Initiation>
struct source_home_with_executor : source_home<Executor, Initiation> {
    using executor_type = typename Initiation::executor_type;
    executor_type get_executor() const noexcept { return this->initiation.get_executor(); }
};

template <class Initiation>
struct initiation_home {
    using executor_type = typename Initiation::executor_type;

    Initiation initiation;

    executor_type get_executor() const noexcept { return initiation.get_executor(); }
    executor_type home() const noexcept { return initiation.get_executor(); }
};

template <class Signature, class Executor, class Threading, class Initiation>
auto make_bound_initiation(const Executor& executor, cancellation_scope_ptr<Threading> scope,
                           Initiation&& initiation)
{
    using stored = std::decay_t<Initiation>;
    if constexpr (requires { typename stored::executor_type; }) {
        if constexpr (postable_executor<typename stored::executor_type>) {
            return bound_initiation<Signature, Threading, initiation_home<stored>>{
                {std::forward<Initiation>(initiation)}, std::move(scope)};
        } else {
            return bound_initiation<Signature, Threading,
                                    source_home_with_executor<Executor, stored>>{
                {{executor, std::forward<Initiation>(initiation)}}, std::move(scope)};
        }
    } else {
        return bound_initiation<Signature, Threading, source_home<Executor, stored>>{
            {executor, std::forward<Initiation>(initiation)}, std::move(scope)};
    }
}

} // namespace turnstile::inline v0_1::detail

template <class Executor, class Threading, class Token, class Signature>
class boost::asio::async_result<turnstile::detail::bind_token<Executor, Threading, Token>,
                                Signature> {
public:
    template <class Initiation, class Bound, class... Args>
    static auto initiate(Initiation&& initiation, Bound&& bound, Args&&... args)
        -> decltype(asio::async_initiate<Token, Signature>(
            turnstile::detail::make_bound_initiation<Signature, Executor, Threading>(
                bound.executor, bound.scope, std::forward<Initiation>(initiation)),
            bound.token, std::forward<Args>(args)...))
    {
        Token token(std::forward<Bound>(bound).token);
        return asio::async_initiate<Token, Signature>(
            turnstile::detail::make_bound_initiation<Signature, Executor, Threading>(
                bound.executor, std::forward<Bound>(bound).scope,
                std::forward<Initiation>(initiation)),
            token, std::forward<Args>(args)...);
    }
};
