// SPDX-License-Identifier: BSL-1.0
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

// A condition whose waiters have a mutex each, so that no waiter waits for the lock of a completed
// one.
template <class Threading>
struct condition_subject
    : subject_base<turnstile::basic_condition<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_condition<asio::any_io_executor, Threading>>;
    using mutex = turnstile::basic_mutex<asio::any_io_executor, Threading>;

    using base::base;
    void consume() {}

protected:
    typename mutex::lock_type& add()
    {
        parties_.push_back(std::make_unique<party>(this->object->get_executor()));
        return parties_.back()->lock;
    }

private:
    struct party {
        explicit party(const asio::any_io_executor& executor)
            : guard(executor), lock(guard, std::try_to_lock)
        {
        }
        mutex guard;
        typename mutex::lock_type lock;
    };
    std::vector<std::unique_ptr<party>> parties_;
};

// A wait without a predicate: any notification completes it.
template <class Threading>
struct condition_wait : condition_subject<Threading> {
    using base = condition_subject<Threading>;
    static constexpr bool keeps_grants = false;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(this->add(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(this->add()); }
    void grant() { this->object->notify_one(); }
    std::size_t available() const { return 0; }
};

// A flag as the predicate, and a notification when the flag is set.
template <class Threading>
struct condition_wait_predicate : condition_subject<Threading> {
    using base = condition_subject<Threading>;
    static constexpr bool is_broadcast = true;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(this->add(), flag_is_set(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(this->add(), flag_is_set()); }
    bool try_op() { return is_set_; }
    void grant()
    {
        is_set_ = true;
        this->object->notify_all();
    }
    std::size_t available() const { return is_set_ ? 1 : 0; }

private:
    auto flag_is_set() const
    {
        return [this] { return is_set_; };
    }

    bool is_set_ = false;
};

using condition_subjects =
    std::tuple<condition_wait<thread_safe>, condition_wait<strand_confined>,
               condition_wait_predicate<thread_safe>, condition_wait_predicate<strand_confined>>;

} // namespace contract
