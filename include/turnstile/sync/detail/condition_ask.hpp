#pragma once

#include <turnstile/core/detail/start_wait.hpp>
#include <turnstile/sync/detail/condition_state.hpp>

#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

namespace turnstile::detail {

// Stands for the predicate of a wait without one: any notification will do.
struct any_notification {
    bool operator()() const noexcept { return false; } // not without one
};

// A wait on a condition, which lets go of `lock` while it lasts.
template <class Condition, class Mutex, class Predicate>
class condition_ask final : public condition_user {
public:
    using executor_type = typename Condition::executor_type;
    using threading = typename Condition::threading_policy;
    using result_type = void;
    using waiter_type = condition_waiter<threading>;
    static constexpr bool refundable = true; // of what is to be had at once, nothing is used up

    condition_ask(Condition& condition, std::unique_lock<Mutex>& lock, Predicate predicate)
        : condition_(&condition), lock_(&lock), predicate_(std::move(predicate))
    {
    }

    // Where an exception of the predicate goes, if anybody wants it.
    void keep_exception_in(std::exception_ptr& thrown) noexcept { thrown_ = &thrown; }

    const executor_type& executor() const noexcept { return condition_->executor(); }
    condition_state<threading>& state() const noexcept { return condition_->state(); }

    verdict try_now() noexcept
    {
        if (!lock_->owns_lock())
            return verdict::refused(errc::not_locked);
        switch (test()) {
        case answer::yes:
            return verdict::granted();
        case answer::failed:
            return verdict::refused(errc::predicate_failed);
        case answer::no:
            break;
        }
        return verdict::wait();
    }
    void give_back() const noexcept {}
    // Not const: the operation keeps using this ask, which must be its own.
    void prepare(waiter_type& w)
    {
        w.bind(*this, !std::is_same_v<Predicate, any_notification>, state(),
               lock_->owns_lock() ? &Condition::gate_of(*lock_->mutex()) : nullptr);
    }

private:
    void let_go_of_lock() noexcept override { mutex_ = lock_->release(); }
    void adopt_lock() noexcept override
    {
        *lock_ = std::unique_lock<Mutex>(*mutex_, std::adopt_lock);
    }
    answer test() noexcept override
    {
        try {
            return predicate_() ? answer::yes : answer::no;
        } catch (...) {
            if (thrown_)
                *thrown_ = std::current_exception();
            return answer::failed;
        }
    }

    Condition* condition_;
    std::unique_lock<Mutex>* lock_;
    Mutex* mutex_ = nullptr; // while the lock is let go
    std::exception_ptr* thrown_ = nullptr;
    [[no_unique_address]] Predicate predicate_;
};

// A coroutine is thrown what its predicate throws.
template <class Executor, class Ask>
asio::awaitable<void, Executor> wait_and_rethrow(Ask ask)
{
    std::exception_ptr thrown;
    ask.keep_exception_in(thrown);
    const auto [ec] =
        co_await start_wait(std::move(ask), asio::as_tuple(asio::use_awaitable_t<Executor>()));
    if (ec == errc::predicate_failed)
        std::rethrow_exception(thrown);
    throw_if(ec, "condition::async_wait");
}

template <class Token>
struct executor_of_coroutine {
    using type = void;
};
template <class Executor>
struct executor_of_coroutine<asio::use_awaitable_t<Executor>> {
    using type = Executor;
};

template <class Ask, class Token>
auto start_condition_wait(Ask ask, Token&& token)
{
    using executor = typename executor_of_coroutine<std::decay_t<Token>>::type;
    if constexpr (std::is_void_v<executor>)
        return start_wait(std::move(ask), std::forward<Token>(token));
    else
        return wait_and_rethrow<executor>(std::move(ask));
}

} // namespace turnstile::detail
