#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <utility>

namespace turnstile::detail {

template <class T>
concept execution_context = std::derived_from<T, asio::execution_context> && requires(T& t)
{
    t.get_executor();
};

// What every object of the library has: an executor, and a state that outlives it for as
// long as operations are on their way. Neither copyable nor movable.
template <class Executor, class Threading, class State>
class io_object {
public:
    /// The executor that completions run on, unless their handler has its own.
    using executor_type = Executor;
    /// Who may call: `thread_safe` or `strand_confined`.
    using threading_policy = Threading;

    /// The executor given at construction. Thread safe.
    executor_type get_executor() const noexcept { return executor_; }

protected:
    template <class... Args>
    explicit io_object(Executor executor, Args&&... args)
        : executor_(std::move(executor)), state_(executor_, std::forward<Args>(args)...)
    {
    }
    ~io_object() = default;

    const Executor& executor() const noexcept { return executor_; }
    State& state() const noexcept { return *state_; }

private:
    Executor executor_;
    owned_state<State> state_;
};

} // namespace turnstile::detail
