// The waiting operations of shared_mutex.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/sync/shared_mutex.hpp>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

template <class Threading>
using shared_mutex_of = turnstile::basic_shared_mutex<asio::any_io_executor, Threading>;

// A writer, while another is inside.
template <class Threading>
struct shared_mutex_lock : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 1;

    explicit shared_mutex_lock(const asio::any_io_executor& executor) : base(executor)
    {
        BOOST_TEST_REQUIRE(this->object->try_lock());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_lock(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_lock(); }
    bool try_op() { return this->object->try_lock(); }
    void grant() { this->object->unlock(); }
    std::size_t available() const { return this->object->is_locked() ? 0 : 1; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

// Readers, while a writer is inside: when it leaves all of them go.
template <class Threading>
struct shared_mutex_lock_shared : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    explicit shared_mutex_lock_shared(const asio::any_io_executor& executor) : base(executor)
    {
        BOOST_TEST_REQUIRE(this->object->try_lock());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_lock_shared(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_lock_shared(); }
    bool try_op() { return this->object->try_lock_shared(); }
    void grant()
    {
        if (this->object->is_locked())
            this->object->unlock();
    }
    std::size_t available() const { return this->object->is_locked() ? 0 : 1; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

// Who wants the upgradable lock, while another has it.
template <class Threading>
struct shared_mutex_lock_upgrade : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 1;

    explicit shared_mutex_lock_upgrade(const asio::any_io_executor& executor) : base(executor)
    {
        BOOST_TEST_REQUIRE(this->object->try_lock_upgrade());
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_lock_upgrade(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_lock_upgrade(); }
    bool try_op() { return this->object->try_lock_upgrade(); }
    void grant() { this->object->unlock_upgrade(); }
    std::size_t available() const { return this->object->is_locked_upgrade() ? 0 : 1; }
    template <class Lock>
    void consume(Lock lock)
    {
        BOOST_TEST(lock.owns_lock());
        lock.release();
    }
};

// Upgrades, each of a mutex of its own, since there can only be one at a time. A reader is in
// the way of all of them, until the grant.
template <class Threading>
struct shared_mutex_upgrade : subject_base<shared_mutex_of<Threading>> {
    using base = subject_base<shared_mutex_of<Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    struct party {
        explicit party(const asio::any_io_executor& executor)
            : mutex(executor), lock(mutex, std::try_to_lock)
        {
        }
        ~party() { lock.release(); }
        shared_mutex_of<Threading> mutex;
        turnstile::upgrade_lock<shared_mutex_of<Threading>> lock;
    };

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        party& p = add();
        return p.mutex.async_upgrade(p.lock, std::forward<Token>(token));
    }
    auto async_op()
    {
        party& p = add();
        return p.mutex.async_upgrade(p.lock);
    }
    bool try_op() { return granted_; }
    void grant()
    {
        if (!std::exchange(granted_, true))
            for (auto& p : parties_)
                p->mutex.unlock_shared();
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
        parties_.clear();
        base::destroy();
    }

private:
    party& add()
    {
        auto p = std::make_unique<party>(this->object->get_executor());
        BOOST_TEST_REQUIRE(p->lock.owns_lock());
        parties_.push_back(std::move(p));
        if (!granted_)
            BOOST_TEST_REQUIRE(parties_.back()->mutex.try_lock_shared());
        return *parties_.back();
    }

    std::vector<std::unique_ptr<party>> parties_;
    bool granted_ = false;
};

using shared_mutex_subjects = std::tuple<                                               //
    shared_mutex_lock<thread_safe>, shared_mutex_lock<strand_confined>,                 //
    shared_mutex_lock_shared<thread_safe>, shared_mutex_lock_shared<strand_confined>,   //
    shared_mutex_lock_upgrade<thread_safe>, shared_mutex_lock_upgrade<strand_confined>, //
    shared_mutex_upgrade<thread_safe>, shared_mutex_upgrade<strand_confined>>;

} // namespace contract
