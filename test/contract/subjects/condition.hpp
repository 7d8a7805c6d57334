// The waiting operations of condition.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/condition.hpp>

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

// A hand-made event: a flag, and a condition that is notified when it is raised. Each waiter
// has a mutex of its own, so that none has to wait for the lock of one that has completed.
template <class Threading>
struct condition_wait : subject_base<turnstile::basic_condition<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_condition<asio::any_io_executor, Threading>>;
    using mutex = turnstile::basic_mutex<asio::any_io_executor, Threading>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    struct party {
        explicit party(const asio::any_io_executor& executor)
            : guard(executor), lock(guard, std::try_to_lock)
        {
        }
        mutex guard;
        std::unique_lock<mutex> lock;
    };

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(add(), is_raised(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(add(), is_raised()); }
    bool try_op() { return raised_; }
    void grant()
    {
        raised_ = true;
        this->object->notify_all();
    }
    std::size_t available() const { return raised_ ? 1 : 0; }
    void consume() {}

private:
    std::unique_lock<mutex>& add()
    {
        parties_.push_back(std::make_unique<party>(this->object->get_executor()));
        return parties_.back()->lock;
    }
    auto is_raised() const
    {
        return [this] { return raised_; };
    }

    std::vector<std::unique_ptr<party>> parties_;
    bool raised_ = false;
};

using condition_subjects = std::tuple<condition_wait<thread_safe>, condition_wait<strand_confined>>;

} // namespace contract
