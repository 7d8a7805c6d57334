#pragma once

// A wait for a value that satisfies a predicate: waits for the next one, for as long as it
// does not. The predicate is called where the handler would be, or on the strand of an object
// that is confined to one; without any lock. If it throws, the exception goes where one of a
// handler's would: to the coroutine that waits, or to whoever runs the executor.
//
// The Ask has `executor_` and `seen`, which it is told; its result is a pointer to the value,
// with a version().

#include <turnstile/core/detail/handler_allocator.hpp>
#include <turnstile/core/detail/start_wait.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// What the waits have in common, and need even if the object goes while the predicate is being
// called. Between two of them it is this that keeps the object's context running.
template <class Ask>
class kept_ask {
public:
    explicit kept_ask(const Ask& ask)
        : ask_(ask), executor_(ask.executor()), work_(executor_), state_(&ask.state())
    {
    }

    void let_go() noexcept { work_.reset(); }

    template <class Result>
    void go_on_after(const Result& result) noexcept
    {
        ask_.seen = result.version();
    }

    // Refers to this.
    Ask get() const noexcept
    {
        Ask ask(ask_);
        ask.executor_ = &executor_;
        return ask;
    }

private:
    Ask ask_;
    typename Ask::executor_type executor_;
    asio::executor_work_guard<typename Ask::executor_type> work_;
    boost::intrusive_ptr<std::remove_reference_t<decltype(std::declval<Ask&>().state())>> state_;
};

// Where one wait follows the other: where the handler will run.
template <class Ask, class Handler, bool IsConfined>
struct repeat_place {
    repeat_place(const Ask&, const Handler&) noexcept {}

    template <class F>
    void finish(F f)
    {
        f();
    }
};

// On the object's own executor, if only there it may be touched.
template <class Ask, class Handler>
class repeat_place<Ask, Handler, true> {
public:
    using executor_type = typename Ask::executor_type;

    repeat_place(const Ask& ask, const Handler& handler)
        : home_(ask.executor()), work_(asio::get_associated_executor(handler, home_))
    {
    }

    executor_type get_executor() const noexcept { return home_; }

    template <class F>
    void finish(F f)
    {
        const auto work = std::move(work_);
        if constexpr (std::is_same_v<handler_executor, executor_type>) {
            if (work.get_executor() == home_)
                return f(); // needs no memory, so it cannot fail
        }
        asio::dispatch(work.get_executor(), std::move(f));
    }

private:
    using handler_executor = asio::associated_executor_t<Handler, executor_type>;

    executor_type home_;
    asio::executor_work_guard<handler_executor> work_;
};

// Hands a cancellation on to the wait that is under way, and remembers it if there is none. The
// caller's signal may go before the operation does: so this is shared by both.
struct repeat_cancellation {
    asio::cancellation_signal current;
    std::atomic<bool> requested{false};

    template <class Handler>
    static std::shared_ptr<repeat_cancellation> connect(const Handler& handler)
    {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (!slot.is_connected())
            return nullptr;
        auto self =
            std::allocate_shared<repeat_cancellation>(handler_allocator<std::byte>(handler));
        slot.assign([self](asio::cancellation_type_t type) {
            if (type != asio::cancellation_type::none)
                self->requested.store(true, std::memory_order_relaxed);
            self->current.emit(type);
        });
        return self;
    }
};

template <class Ask, class Predicate, class Handler>
class repeat_until : public repeat_place<Ask, Handler, Ask::threading::is_confined> {
public:
    repeat_until(const Ask& ask, Predicate predicate, Handler handler)
        : repeat_until::repeat_place(ask, handler), ask_(ask), predicate_(std::move(predicate)),
          handler_(std::move(handler)), cancellation_(repeat_cancellation::connect(handler_))
    {
    }

    const Handler& handler() const noexcept { return handler_; }

    // The slot of each wait.
    using cancellation_slot_type = asio::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept
    {
        return cancellation_ ? cancellation_->current.slot() : asio::cancellation_slot();
    }

    void start() &&
    {
        const kept_ask<Ask> ask(ask_); // while *this is on its way into the operation
        initiate_wait<Ask>(ask.get())(std::move(*this));
    }

    void operator()(error_code ec, typename Ask::result_type result)
    {
        const bool satisfied = !ec && predicate_(std::as_const(*result));
        if (!ec && is_cancelled()) {
            ec = asio::error::operation_aborted;
            result = {};
        }
        if (ec || satisfied) {
            ask_.let_go();
            return this->finish([h = std::move(handler_), ec, r = std::move(result)]() mutable {
                std::move(h)(ec, std::move(r));
            });
        }
        ask_.go_on_after(result);
        std::move(*this).start();
    }

private:
    bool is_cancelled() const noexcept
    {
        return cancellation_ && cancellation_->requested.load(std::memory_order_relaxed);
    }

    kept_ask<Ask> ask_;
    Predicate predicate_;
    Handler handler_;
    std::shared_ptr<repeat_cancellation> cancellation_;
};

template <class Ask, class Predicate>
class initiate_repeat {
public:
    using executor_type = typename Ask::executor_type;

    initiate_repeat(const Ask& ask, Predicate predicate)
        : ask_(ask), predicate_(std::move(predicate))
    {
    }

    executor_type get_executor() const noexcept { return ask_.executor(); }

    template <class Handler>
    void operator()(Handler&& handler)
    {
        repeat_until<Ask, Predicate, std::decay_t<Handler>>(ask_, std::move(predicate_),
                                                            std::forward<Handler>(handler))
            .start();
    }

private:
    Ask ask_;
    Predicate predicate_;
};

// As wait_in_coroutine, with all its waits in one frame. There is nothing to lose, so it
// always tries first.
template <class Shape, class Ask, class Predicate>
auto repeat_in_coroutine(Ask first, Predicate predicate)
    -> asio::awaitable<typename Shape::value_type, typename Shape::executor_type>
{
    static_assert(Ask::refundable && concluding_ask<Ask>);
    kept_ask<Ask> kept(first);
    for (;;) {
        outcome<typename Ask::result_type> next;
        Ask ask = kept.get();
        const bool looked = shortcut_budget::spend();
        const verdict now = looked ? ask.try_now() : verdict::wait();
        if (now.is_granted()) {
            next = ask.conclude_now();
        } else if (!now.must_wait()) {
            next.error = now.error();
        } else {
            operation_frame<Ask, typename Shape::executor_type> operation(ask, looked);
            co_await std::move(operation);
            next = operation.result();
        }
        if (next.error || predicate(std::as_const(*next.value)))
            co_return Shape::result(std::move(next));
        kept.go_on_after(next.value);
    }
}

template <class Ask, class Predicate, class Token>
auto start_repeat(const Ask& ask, Predicate predicate, Token&& token)
{
    using result_type = typename Ask::result_type;
    using shape = coroutine_token<std::decay_t<Token>, result_type>;
    if constexpr (shape::is_coroutine)
        return repeat_in_coroutine<shape>(ask, std::move(predicate));
    else
        return asio::async_initiate<Token, typename signature_of<result_type>::type>(
            initiate_repeat<Ask, Predicate>(ask, std::move(predicate)), token);
}

} // namespace turnstile::detail

// The allocator and the rest are the handler's; so is the executor, unless the place has its
// own.
template <template <class, class> class Associator, class Ask, class Predicate, class Handler,
          class Default>
struct boost::asio::associator<Associator, turnstile::detail::repeat_until<Ask, Predicate, Handler>,
                               Default> : Associator<Handler, Default> {
    using wrapper = turnstile::detail::repeat_until<Ask, Predicate, Handler>;

    static typename Associator<Handler, Default>::type get(const wrapper& w) noexcept
    {
        return Associator<Handler, Default>::get(w.handler());
    }
    static auto get(const wrapper& w, const Default& otherwise) noexcept
        -> decltype(Associator<Handler, Default>::get(w.handler(), otherwise))
    {
        return Associator<Handler, Default>::get(w.handler(), otherwise);
    }
};
