// SPDX-License-Identifier: BSL-1.0
// The waiting operations of shared_mutex.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/shared_mutex.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace contract {

template <class Threading>
using shared_mutex_of = turnstile::basic_shared_mutex<asio::any_io_executor, Threading>;

// The three ways to lock.
struct to_write {
    static constexpr auto async = [](auto& m, auto&&... token) {
        return m.async_lock(std::forward<decltype(token)>(token)...);
    };
    static bool try_lock(auto& m) { return m.try_lock(); }
    static bool is_locked(const auto& m) { return m.is_locked(); }
    static void unlock(auto& m) { m.unlock(); }
};
struct to_read {
    static constexpr auto async = [](auto& m, auto&&... token) {
        return m.async_lock_shared(std::forward<decltype(token)>(token)...);
    };
    static bool try_lock(auto& m) { return m.try_lock_shared(); }
};
struct to_upgrade {
    static constexpr auto async = [](auto& m, auto&&... token) {
        return m.async_lock_upgrade(std::forward<decltype(token)>(token)...);
    };
    static bool try_lock(auto& m) { return m.try_lock_upgrade(); }
    static bool is_locked(const auto& m) { return m.is_locked_upgrade(); }
    static void unlock(auto& m) { m.unlock_upgrade(); }
};

// Waits for a lock of type Way while the subject holds one of type Holder. When a writer unlocks,
// all waiting readers are granted.
template <class Threading, class Way, class Holder>
struct shared_mutex_lock : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = !std::is_same_v<Way, Holder>;

    explicit shared_mutex_lock(const asio::any_io_executor& executor) : base(executor)
    {
        BOOST_TEST_REQUIRE(Holder::try_lock(*this->object));
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return Way::async(*this->object, std::forward<Token>(token));
    }
    auto async_op() { return Way::async(*this->object); }
    bool try_op() { return Way::try_lock(*this->object); }
    void grant()
    {
        if (!is_broadcast || available() == 0)
            Holder::unlock(*this->object);
    }
    std::size_t available() const { return Holder::is_locked(*this->object) ? 0 : 1; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

// Upgrades, each of its own mutex, because a mutex has one upgrade at a time. A reader holds back
// each of them until the grant.
template <class Threading>
struct shared_mutex_upgrade : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr bool order_is_strict = false;

    struct party {
        explicit party(const asio::any_io_executor& executor)
            : mutex(std::in_place, executor), lock(*mutex, std::try_to_lock)
        {
        }
        std::optional<shared_mutex_of<Threading>> mutex;
        turnstile::upgrade_lock<shared_mutex_of<Threading>> lock;
    };

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        party& p = add();
        return p.mutex->async_upgrade(p.lock, std::forward<Token>(token));
    }
    auto async_op()
    {
        party& p = add();
        return p.mutex->async_upgrade(p.lock);
    }
    bool try_op() { return granted_; }
    void grant()
    {
        if (!std::exchange(granted_, true))
            for (auto& p : parties_)
                p->mutex->unlock_shared();
    }
    std::size_t available() const { return granted_ ? 1 : 0; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
    void destroy()
    {
        end_mutexes();
        base::destroy();
    }
    ~shared_mutex_upgrade() { end_mutexes(); }

private:
    // A lock must outlive its upgrade, which may not have completed: all locks are kept.
    void end_mutexes()
    {
        static std::vector<std::unique_ptr<party>> kept;
        for (auto& p : parties_) {
            p->mutex.reset();
            kept.push_back(std::move(p));
        }
        parties_.clear();
    }
    party& add()
    {
        auto p = std::make_unique<party>(this->object->get_executor());
        BOOST_TEST_REQUIRE(p->lock.owns_lock());
        parties_.push_back(std::move(p));
        if (!granted_)
            BOOST_TEST_REQUIRE(parties_.back()->mutex->try_lock_shared());
        return *parties_.back();
    }

    std::vector<std::unique_ptr<party>> parties_;
    bool granted_ = false;
};

using shared_mutex_subjects = std::tuple<                       //
    shared_mutex_lock<thread_safe, to_write, to_write>,         //
    shared_mutex_lock<strand_confined, to_write, to_write>,     //
    shared_mutex_lock<thread_safe, to_read, to_write>,          //
    shared_mutex_lock<strand_confined, to_read, to_write>,      //
    shared_mutex_lock<thread_safe, to_upgrade, to_upgrade>,     //
    shared_mutex_lock<strand_confined, to_upgrade, to_upgrade>, //
    shared_mutex_upgrade<thread_safe>, shared_mutex_upgrade<strand_confined>>;

} // namespace contract
