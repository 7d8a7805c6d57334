// SPDX-License-Identifier: BSL-1.0
// An execution context that runs the posted functions in a seeded random order.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <cstdint>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace kit {

namespace asio = boost::asio;

class chaos_context : public asio::execution_context {
public:
    class executor_type;

    explicit chaos_context(std::uint64_t seed) : random_(seed) {}
    ~chaos_context();

    executor_type get_executor() noexcept;

    // Runs one function, chosen at random. Returns false if there is none.
    bool run_one();
    void run()
    {
        while (run_one()) {
        }
    }
    // A random number below n.
    std::size_t pick(std::size_t n)
    {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
    }

private:
    struct task {
        virtual ~task() = default;
        virtual void run() = 0;
    };
    template <class F>
    struct task_of : task {
        explicit task_of(F f) : function(std::move(f)) {}
        void run() override { std::move(function)(); }
        F function;
    };

    std::vector<std::unique_ptr<task>> tasks_;
    std::mt19937_64 random_;
};

class chaos_context::executor_type {
public:
    explicit executor_type(chaos_context& context) noexcept : context_(&context) {}

    chaos_context& query(asio::execution::context_t) const noexcept { return *context_; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
    {
        return asio::execution::blocking.never;
    }
    executor_type require(asio::execution::blocking_t::never_t) const noexcept { return *this; }

    template <class F>
    void execute(F&& f) const
    {
        context_->tasks_.push_back(std::make_unique<task_of<std::decay_t<F>>>(std::forward<F>(f)));
    }

    friend bool operator==(const executor_type& a, const executor_type& b) noexcept
    {
        return a.context_ == b.context_;
    }
    friend bool operator!=(const executor_type& a, const executor_type& b) noexcept
    {
        return !(a == b);
    }

private:
    chaos_context* context_;
};

inline chaos_context::~chaos_context()
{
    shutdown();
    while (!tasks_.empty()) { // the destructor of a function may post another one
        auto dropped = std::move(tasks_);
        tasks_.clear();
    }
    destroy();
}

inline chaos_context::executor_type chaos_context::get_executor() noexcept
{
    return executor_type(*this);
}

inline bool chaos_context::run_one()
{
    if (tasks_.empty())
        return false;
    const auto chosen = tasks_.begin() + static_cast<std::ptrdiff_t>(pick(tasks_.size()));
    auto next = std::move(*chosen);
    tasks_.erase(chosen);
    next->run();
    return true;
}

} // namespace kit
