// SPDX-License-Identifier: BSL-1.0
// Makes a subject of the contract from its description; see subjects.hpp.
#pragma once

#include "contract/subject.hpp"

#include <turnstile/core/default_token.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
#    include <boost/asio/bind_immediate_executor.hpp>
#endif
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/core/type_name.hpp>
#include <boost/test/unit_test.hpp>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace contract {

// The part of a subject that a handler knows: it takes the results. Subjects with the same
// operation share the code of that operation, which is most of the code to compile.
template <class... Result>
struct outlet {
    virtual ~outlet() = default;
    virtual void consume(Result... result) = 0;
    virtual void after_error(error_code ec) = 0;
};

template <class Result>
struct outlet_for {
    using type = outlet<Result>;
};
template <>
struct outlet_for<void> {
    using type = outlet<>;
};

template <class S, class Outlet>
struct with_outlet;

template <class S, class... Result>
struct with_outlet<S, outlet<Result...>> final : S, outlet<Result...> {
    using S::S;
    void consume(Result... result) override { S::consume(std::move(result)...); }
    void after_error(error_code ec) override { S::after_error(ec); }
};

// The handler: consumes the result, then calls the test's continuation. The subject may be
// destroyed before its last operations complete.
template <class Outlet>
class consumer {
public:
    consumer(std::weak_ptr<Outlet> s, operation op)
        : subject_(std::move(s)), operation_(std::move(op))
    {
    }

    using cancellation_slot_type = asio::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept { return operation_.slot(); }

    template <class... Values>
    void operator()(error_code ec, Values... values)
    {
        operation_.called(ec);
        const auto s = subject_.lock();
        if (!ec) {
            BOOST_TEST_REQUIRE(s);
            s->consume(std::move(values)...);
        } else if (s) {
            s->after_error(ec);
        }
        operation_.finish(ec);
    }

private:
    std::weak_ptr<Outlet> subject_;
    operation operation_;
};

template <class Outlet, class... Values>
struct taken_from final : taken::values {
    explicit taken_from(std::shared_ptr<Outlet> s, Values... v)
        : subject(std::move(s)), held(std::move(v)...)
    {
    }
    void consume() override
    {
        std::apply([&](Values&... v) { subject->consume(std::move(v)...); }, held);
    }

    std::shared_ptr<Outlet> subject;
    std::tuple<Values...> held;
};

template <class Outlet, class... Values>
taken hold(std::shared_ptr<Outlet> subject, Values... values)
{
    return taken(
        std::make_unique<taken_from<Outlet, Values...>>(std::move(subject), std::move(values)...));
}

template <class Outlet, class Result>
std::function<taken()> getter(std::shared_ptr<Outlet> subject, std::future<Result> future)
{
    return [subject = std::move(subject),
            shared = std::make_shared<std::future<Result>>(std::move(future))] {
        if constexpr (std::is_void_v<Result>) {
            shared->get();
            return hold(subject);
        } else {
            return hold(subject, shared->get());
        }
    };
}

template <class S>
class subject_of final : public subject {
    using awaitable = decltype(std::declval<S&>().async_op(asio::use_awaitable));
    using result = typename awaitable::value_type; // an asio::awaitable can be used with ||
    using outlet_type = typename outlet_for<result>::type;
    static constexpr bool is_void = std::is_void_v<result>;
    static_assert(std::is_same_v<awaitable, asio::awaitable<result>>);
    static_assert(std::is_same_v<awaitable, decltype(std::declval<S&>().async_op())>,
                  "the default token is a coroutine");

public:
    explicit subject_of(const asio::any_io_executor& executor)
        : concrete_(std::make_shared<with_outlet<S, outlet_type>>(executor))
    {
    }

    void start(operation op) override { s().async_op(handler(std::move(op))); }
    void start_on(const io_executor& e, operation op) override { start_bound(e, std::move(op)); }
    void start_on(const io_strand& e, operation op) override { start_bound(e, std::move(op)); }
    void start_on(const asio::any_io_executor& e, operation op) override
    {
        start_bound(e, std::move(op));
    }
    void start_on(const asio::any_completion_executor& e, operation op) override
    {
        start_bound(e, std::move(op));
    }
    void start_on(const asio::system_executor& e, operation op) override
    {
        start_bound(e, std::move(op));
    }
    void start_in(kit::allocation_plan& memory, operation op) override
    {
        s().async_op(
            asio::bind_allocator(kit::failing_allocator<void*>(memory), handler(std::move(op))));
    }
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
    void start_immediate(const asio::system_executor& e, kit::allocation_plan& memory,
                         operation op) override
    {
        s().async_op(asio::bind_immediate_executor(
            e,
            asio::bind_allocator(kit::failing_allocator<void*>(memory), handler(std::move(op)))));
    }
#endif

    // All tokens in one coroutine, because each coroutine takes long to compile.
    asio::awaitable<taken> wait(by token) override
    {
        const auto self = concrete_;
        error_code ec;
        [[maybe_unused]] std::conditional_t<is_void, error_code, std::optional<result>> value;
        try {
            switch (token) {
            case by::default_token: {
                auto op = self->async_op();
                if constexpr (is_void)
                    co_await std::move(op);
                else
                    value = co_await std::move(op);
                break;
            }
            case by::use_awaitable: {
                auto op = self->async_op(asio::use_awaitable);
                if constexpr (is_void)
                    co_await std::move(op);
                else
                    value = co_await std::move(op);
                break;
            }
            case by::as_tuple: {
                auto got = co_await self->async_op(asio::as_tuple(asio::use_awaitable));
                ec = std::get<0>(got);
                if constexpr (!is_void)
                    value = std::get<1>(std::move(got));
                break;
            }
            case by::redirect_error: {
                ec = asio::error::fault;
                auto op = self->async_op(asio::redirect_error(asio::use_awaitable, ec));
                if constexpr (is_void)
                    co_await std::move(op);
                else
                    value = co_await std::move(op);
                break;
            }
            case by::deferred: {
                auto op = self->async_op(asio::deferred); // starts nothing yet
                if constexpr (is_void)
                    co_await std::move(op);
                else
                    value = co_await std::move(op);
                break;
            }
            case by::as_tuple_deferred: {
                auto got = co_await self->async_op(asio::as_tuple(asio::deferred));
                ec = std::get<0>(got);
                if constexpr (!is_void)
                    value = std::get<1>(std::move(got));
                break;
            }
            }
        } catch (const turnstile::system_error& e) {
            self->after_error(e.code());
            throw;
        }
        if (ec) {
            self->after_error(ec);
            co_return taken(ec);
        }
        if constexpr (is_void)
            co_return hold(std::shared_ptr<outlet_type>(self));
        else
            co_return hold(std::shared_ptr<outlet_type>(self), std::move(*value));
    }

#if TURNSTILE_TEST_HAS_CONTEXT
    taken wait(const asio::yield_context& yield) override
    {
        if constexpr (is_void) {
            s().async_op(yield);
            return hold(outlet());
        } else {
            return hold(outlet(), s().async_op(yield));
        }
    }
#endif

    std::function<taken()> start_future() override
    {
        return getter(outlet(), s().async_op(asio::use_future));
    }
    void start_detached() override { s().async_op(asio::detached); }

    bool try_op() override
    {
        if constexpr (can_try)
            return s().try_op();
        else
            return false;
    }
    void grant() override { s().grant(); }
    std::size_t available() const override
    {
        if constexpr (S::keeps_grants)
            return concrete_->available();
        else
            return 0;
    }
    asio::any_io_executor executor() const override { return concrete_->object->get_executor(); }
    asio::any_io_executor initiation_executor() override { return s().async_op(executor_query()); }
    void destroy() override { s().destroy(); }

    static kind describe()
    {
        kind k;
        k.name = readable_name();
        k.is_confined = S::is_confined;
        k.is_broadcast = S::is_broadcast;
        k.stays_granted = S::is_broadcast && !S::is_spent;
        k.keeps_grants = S::keeps_grants;
        k.order_is_fifo = S::order_is_fifo;
        k.order_is_strict = S::order_is_fifo && S::order_is_strict;
        k.is_reusable = S::is_reusable;
        k.can_try = can_try;
        k.rebinds_executor = S::rebinds_executor;
        k.uses_its_executors_default_token = uses_its_executors_default_token();
        k.capacity = S::capacity;
        k.max_waiters = S::max_waiters;
        k.exempt_from.assign(S::exempt_from.begin(), S::exempt_from.end());
        k.make = [](const asio::any_io_executor& executor) -> subject_ptr {
            return std::make_shared<subject_of>(executor);
        };
        return k;
    }

private:
    static constexpr bool can_try = requires(S & s) { s.try_op(); };

    // Whether the object, rebound to an executor with a default token, uses that token.
    static constexpr bool uses_its_executors_default_token()
    {
        using token = asio::as_tuple_t<asio::deferred_t>;
        using executor = token::executor_with_default<io_executor>;
        if constexpr (S::rebinds_executor) {
            using object = typename S::object_type::template rebind_executor<executor>::other;
            return std::is_same_v<typename object::executor_type, executor> &&
                   std::is_same_v<turnstile::default_token_t<typename object::executor_type>,
                                  token>;
        }
        return false;
    }

    S& s() noexcept { return *concrete_; }

    std::shared_ptr<outlet_type> outlet() const { return concrete_; }
    consumer<outlet_type> handler(operation op) { return {outlet(), std::move(op)}; }

    template <class Executor>
    void start_bound(const Executor& executor, operation op)
    {
        s().async_op(asio::bind_executor(executor, handler(std::move(op))));
    }

    // The type without namespaces, and without characters that have a meaning in --run_test.
    static std::string readable_name()
    {
        std::string name = boost::core::type_name<S>();
        for (std::string_view noise : {"contract::", "turnstile::", ", ", ","}) {
            for (auto at = name.find(noise); at != std::string::npos; at = name.find(noise, at))
                name.replace(at, noise.size(), noise.front() == ',' ? "_" : "");
        }
        return name;
    }

    std::shared_ptr<with_outlet<S, outlet_type>> concrete_;
};

template <class... S>
int enroll(const std::tuple<S...>*)
{
    (kinds().push_back(subject_of<S>::describe()), ...);
    return 0;
}

// For a .cpp file of its own: runs every contract test over the subjects in the tuple.
#define ENROLL_SUBJECTS(tuple)                                                                \
    namespace contract {                                                                      \
    namespace {                                                                               \
    [[maybe_unused]] const int tuple##_enrolled = enroll(static_cast<const tuple*>(nullptr)); \
    }                                                                                         \
    }

} // namespace contract
