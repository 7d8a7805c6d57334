// The list of waiting operations that the contract tests run over. To add a primitive: write
// its subject, and add it to `subjects` at the end.
//
// A subject is made so that an operation started now has to wait. grant() lets one go (or
// all, if it is a broadcast); consume() takes what a completed operation was given, so that
// the next one waits again; available() says how many grants are stored, capacity how many
// can be.
#pragma once

#include "kit/completion.hpp"

#include <turnstile/sync/auto_reset_event.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <tuple>
#include <utility>

namespace contract {

namespace asio = boost::asio;
using turnstile::error_code;
using turnstile::strand_confined;
using turnstile::thread_safe;

template <class Object>
struct subject_base {
    using object_type = Object;
    using threading = typename Object::threading_policy;
    static constexpr bool is_confined = threading::is_confined;

    template <class... Args>
    explicit subject_base(const asio::any_io_executor& executor, Args... args)
        : object(std::make_unique<Object>(executor, args...))
    {
    }

    void destroy() { object.reset(); }

    std::unique_ptr<Object> object;
};

template <class Threading>
struct mutex_lock : subject_base<turnstile::basic_mutex<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_mutex<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 1;

    explicit mutex_lock(const asio::any_io_executor& executor) : base(executor)
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

template <class Threading, unsigned N>
struct semaphore_acquire
    : subject_base<turnstile::basic_semaphore<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_semaphore<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 5;

    explicit semaphore_acquire(const asio::any_io_executor& executor) : base(executor, N - 1) {}
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_acquire(N, std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_acquire(N); }
    bool try_op() { return this->object->try_acquire(N).detach() == N; }
    void grant() { this->object->release(N); }
    std::size_t available() const { return this->object->available() / N; }
    template <class Permit>
    void consume(Permit permit)
    {
        BOOST_TEST(permit.detach() == N);
    }
};

template <class Threading>
struct event_wait : subject_base<turnstile::basic_event<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_event<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = true;
    static constexpr std::size_t capacity = 1;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
    bool try_op() { return this->object->is_set(); }
    void grant() { this->object->set(); }
    std::size_t available() const { return this->object->is_set() ? 1 : 0; }
    void consume() {}
};

template <class Threading>
struct auto_reset_event_wait
    : subject_base<turnstile::basic_auto_reset_event<asio::any_io_executor, Threading>> {
    using base = subject_base<turnstile::basic_auto_reset_event<asio::any_io_executor, Threading>>;
    static constexpr bool is_broadcast = false;
    static constexpr std::size_t capacity = 1;

    using base::base;
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_wait(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_wait(); }
    bool try_op() { return this->object->try_wait(); }
    void grant() { this->object->set(); }
    std::size_t available() const { return this->object->is_set() ? 1 : 0; }
    void consume() {}
};

// Starts an operation whose handler is watched and consumes what it is given.
template <class Subject>
void start(Subject& subject, const kit::completion& completion)
{
    subject.async_op(
        completion.handler([&subject](auto... values) { subject.consume(std::move(values)...); }));
}

// The same, with something bound to the handler first (a slot, an executor, an allocator).
template <class Subject, class Bind>
void start(Subject& subject, const kit::completion& completion, Bind&& bind)
{
    subject.async_op(bind(
        completion.handler([&subject](auto... values) { subject.consume(std::move(values)...); })));
}

using subjects = std::tuple<                                                  //
    mutex_lock<thread_safe>, mutex_lock<strand_confined>,                     //
    semaphore_acquire<thread_safe, 1>, semaphore_acquire<strand_confined, 1>, //
    semaphore_acquire<thread_safe, 3>, semaphore_acquire<strand_confined, 3>, //
    event_wait<thread_safe>, event_wait<strand_confined>,                     //
    auto_reset_event_wait<thread_safe>, auto_reset_event_wait<strand_confined>>;

} // namespace contract
