// SPDX-License-Identifier: BSL-1.0
// Handles, the object that they come from, operations that wait for another handle, and the context
// may be destroyed in any order.
#include "contract/handles.hpp"

#include "kit/wrapping_executor.hpp"

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/queue.hpp>
#include <turnstile/channel/watch.hpp>
#include <turnstile/resilience/bulkhead.hpp>
#include <turnstile/resilience/circuit_breaker.hpp>
#include <turnstile/resilience/keyed_circuit_breaker.hpp>
#include <turnstile/resilience/rate_limiter.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/sync/shared_mutex.hpp>
#include <turnstile/work/guarded.hpp>
#include <turnstile/work/keyed_mutex.hpp>
#include <turnstile/work/resource_pool.hpp>
#include <turnstile/work/shared_guarded.hpp>

#include <boost/asio.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

namespace {

using namespace contract;
using asio::any_io_executor;

template <class P>
struct handle_of_mutex {
    static constexpr const char* name = "unique_lock of a mutex";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_mutex<any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e); }
    static auto take(object& m) { return turnstile::unique_lock(m, std::try_to_lock); }
    static auto wait(object& m) { return m.async_lock(); }
};

template <class P>
struct handle_of_shared_mutex {
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_shared_mutex<any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e); }
};

template <class P>
struct handle_of_writer : handle_of_shared_mutex<P> {
    using object = typename handle_of_shared_mutex<P>::object;
    static constexpr const char* name = "unique_lock of a shared_mutex";
    static auto take(object& m) { return turnstile::unique_lock(m, std::try_to_lock); }
    static auto wait(object& m) { return m.async_lock_shared(); }
};

template <class P>
struct handle_of_reader : handle_of_shared_mutex<P> {
    using object = typename handle_of_shared_mutex<P>::object;
    static constexpr const char* name = "shared_lock";
    static auto take(object& m) { return turnstile::shared_lock(m, std::try_to_lock); }
    static auto wait(object& m) { return m.async_lock_upgrade(); }
};

template <class P>
struct handle_of_upgrader : handle_of_shared_mutex<P> {
    using object = typename handle_of_shared_mutex<P>::object;
    static constexpr const char* name = "upgrade_lock";
    static auto take(object& m) { return turnstile::upgrade_lock(m, std::try_to_lock); }
    static auto wait(object& m) { return m.async_lock(); }
};

// A waiting upgrade holds an upgrade lock meanwhile.
template <class P>
struct handle_beside_upgrade : handle_of_shared_mutex<P> {
    using object = typename handle_of_shared_mutex<P>::object;
    static constexpr const char* name = "shared_lock beside an upgrade";
    static auto take(object& m) { return turnstile::shared_lock(m, std::try_to_lock); }
    static asio::awaitable<typename object::lock_type> wait(object& m)
    {
        auto lock = co_await m.async_lock_upgrade();
        co_return co_await m.async_upgrade(lock);
    }
};

template <class P>
struct handle_of_semaphore {
    static constexpr const char* name = "permit of a semaphore";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_semaphore<any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, 3); }
    static auto take(object& s) { return s.try_acquire(2); }
    static auto wait(object& s) { return s.async_acquire(2); }
};

// Parts of a permit after split, merge and detach.
template <class P>
struct handle_in_parts : handle_of_semaphore<P> {
    using object = typename handle_of_semaphore<P>::object;
    static constexpr const char* name = "parts of a permit";
    static auto take(object& s)
    {
        std::pair<typename object::permit_type, typename object::permit_type> parts;
        parts.first = s.try_acquire(3);
        parts.second = parts.first.split(1);
        parts.first.merge(parts.second.split(1));
        parts.second = parts.first.split(1);
        (void)parts.first.split(1).detach();
        return parts;
    }
};

template <class P>
struct handle_of_bulkhead {
    static constexpr const char* name = "permit of a bulkhead";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_bulkhead<any_io_executor, P>;
    static auto make(const any_io_executor& e)
    {
        return std::make_unique<object>(e, turnstile::bulkhead_options{.limit = 1});
    }
    static auto take(object& b) { return b.try_acquire(); }
    static auto wait(object& b) { return b.async_acquire(); }
};

template <class P>
struct handle_of_adaptive_bulkhead : handle_of_bulkhead<P> {
    using object = typename handle_of_bulkhead<P>::object;
    static constexpr const char* name = "permit of an adaptive bulkhead";
    static auto make(const any_io_executor& e)
    {
        return std::make_unique<object>(
            e, turnstile::bulkhead_options{.limit = 1, .adaptive = turnstile::aimd_options{}});
    }
};

template <class P>
struct handle_of_breaker {
    static constexpr const char* name = "permit of a circuit_breaker";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_circuit_breaker<any_io_executor, P, std::chrono::steady_clock>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e); }
    static auto take(object& b) { return b.try_acquire(); }
    static asio::awaitable<int> wait(object& b)
    {
        co_await b.async_wait_state(turnstile::circuit_state::open);
        co_return 0;
    }
};

// The other handle is an outstanding call of a coroutine. Neither refers to the executor.
template <class P>
struct handle_of_keyed_breaker {
    static constexpr const char* name = "permit of a keyed_circuit_breaker";
    static constexpr bool keeps_state = false;
    using object =
        turnstile::basic_keyed_circuit_breaker<int, std::hash<int>, std::equal_to<int>,
                                               any_io_executor, P, std::chrono::steady_clock>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e); }
    static auto take(object& b) { return b.try_acquire(1); }
    static auto wait(object& b) { return b.async_call(1, &never, asio::use_awaitable); }
    static asio::awaitable<int> never()
    {
        asio::steady_timer timer(co_await asio::this_coro::executor,
                                 asio::steady_timer::time_point::max());
        co_await timer.async_wait(asio::use_awaitable);
        co_return 0;
    }
};

template <class P>
struct handle_of_limiter {
    static constexpr const char* name = "reservation of a rate_limiter";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_rate_limiter<any_io_executor, P, std::chrono::steady_clock>;
    static auto make(const any_io_executor& e)
    {
        return std::make_unique<object>(
            e, turnstile::bandwidth{.permits = 1, .period = std::chrono::hours(1), .burst = 1});
    }
    static auto take(object& l) { return l.reserve(1); }
    static asio::awaitable<int> wait(object& l)
    {
        co_await l.async_acquire();
        co_return 0;
    }
};

template <class P>
struct handle_of_queue {
    static constexpr const char* name = "reservation of a queue";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_queue<int, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, 1U); }
    static auto take(object& q) { return q.try_reserve(); }
    static auto wait(object& q) { return q.async_reserve(); }
};

template <class P>
struct handle_of_guarded {
    static constexpr const char* name = "handle of a guarded";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_guarded<std::string, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, "a value"); }
    static auto take(object& g) { return g.try_lock(); }
    static auto wait(object& g) { return g.async_lock(); }
};

template <class P>
struct handle_of_shared_guarded {
    static constexpr const char* name = "read handle of a shared_guarded";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_shared_guarded<std::string, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, "a value"); }
    static auto take(object& g) { return g.try_read(); }
    static auto wait(object& g) { return g.async_lock(); }
};

template <class P>
struct handle_of_resource_pool {
    static constexpr const char* name = "resource_lease";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_resource_pool<std::string, any_io_executor, P>;
    static auto make(const any_io_executor& e)
    {
        turnstile::resource_operations<std::string> operations;
        operations.create = []() -> asio::awaitable<std::string> { co_return std::string(); };
        auto pool = std::make_unique<object>(e, turnstile::resource_pool_options{.max_size = 1},
                                             std::move(operations));
        static_cast<void>(pool->try_add(std::string("resource")));
        return pool;
    }
    static auto take(object& pool) { return pool.try_acquire(); }
    static auto wait(object& pool) { return pool.async_acquire(); }
};

template <class P>
struct handle_of_keyed_mutex {
    static constexpr const char* name = "keyed_lock";
    static constexpr bool keeps_state = true;
    using object =
        turnstile::basic_keyed_mutex<int, std::hash<int>, std::equal_to<int>, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e); }
    static auto take(object& m) { return m.try_lock(2); }
    static auto wait(object& m) { return m.async_lock_all({1, 2, 3}); }
};

template <class P>
struct handle_of_several_keys : handle_of_keyed_mutex<P> {
    using object = typename handle_of_keyed_mutex<P>::object;
    static constexpr const char* name = "keyed_lock_set";
    static auto take(object& m) { return m.try_lock_all({1, 2}); }
    static auto wait(object& m) { return m.async_lock(2); }
};

template <class P>
struct handle_of_watch {
    static constexpr const char* name = "value of a watch";
    static constexpr bool keeps_state = false;
    using object = turnstile::basic_watch<int, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, 1); }
    static auto take(object& w) { return w.get(); }
    static auto wait(object& w) { return w.async_wait_changed(w.get().version()); }
};

// A receiver, and a value that it has received.
template <class P>
struct handle_of_broadcast {
    static constexpr const char* name = "receiver and value of a broadcast";
    static constexpr bool keeps_state = true;
    using object = turnstile::basic_broadcast<int, any_io_executor, P>;
    static auto make(const any_io_executor& e) { return std::make_unique<object>(e, 4U); }
    static auto take(object& b)
    {
        auto receiver = b.subscribe();
        b.send(1);
        auto message = receiver.try_receive();
        return std::pair(std::move(receiver), std::move(message));
    }
    static asio::awaitable<int> wait(object& b)
    {
        auto receiver = b.subscribe();
        co_await receiver.async_receive();
        co_return 0;
    }
};

const auto all_kinds =
    handle_kinds<handle_of_mutex, handle_of_writer, handle_of_reader, handle_of_upgrader,
                 handle_beside_upgrade, handle_of_semaphore, handle_in_parts, handle_of_bulkhead,
                 handle_of_adaptive_bulkhead, handle_of_breaker, handle_of_keyed_breaker,
                 handle_of_limiter, handle_of_queue, handle_of_watch, handle_of_broadcast,
                 handle_of_guarded, handle_of_shared_guarded, handle_of_keyed_mutex,
                 handle_of_several_keys, handle_of_resource_pool>();

// An executor that holds a token: the object and its state keep a copy of it each.
any_io_executor marked(asio::io_context& io, const std::shared_ptr<int>& token)
{
    return kit::wrapping_executor{io.get_executor(), token};
}

using timer_ptr = std::shared_ptr<asio::steady_timer>;

asio::awaitable<void> suspend(timer_ptr timer)
{
    timer->expires_at(asio::steady_timer::time_point::max());
    co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> keep([[maybe_unused]] std::shared_ptr<void> handle, timer_ptr timer)
{
    co_await suspend(std::move(timer));
}

// Waits for another handle, and keeps it until the context is destroyed.
asio::awaitable<void> wait_for_another(handle_source& source,
                                       [[maybe_unused]] std::shared_ptr<handle_source> owned,
                                       bool& ended)
{
    try {
        const auto handle = co_await source.wait();
        co_await suspend(std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor));
    } catch (const turnstile::system_error&) {
        ended = true;
    }
}

enum class step { object, handle, run, context };
enum class keeper { test, coroutine, handler };
enum class owner { test, waiter };

// One handle exists, and a coroutine waits for another one. Then the steps are taken in some order.
class sequence {
public:
    sequence(const handle_kind& kind, keeper keeps_handle, owner owns_object)
    {
        io_.emplace();
        stop_.emplace(*io_);
        object_ = kind.make(marked(*io_, token_));
        std::shared_ptr<void> handle = object_->take();
        if (keeps_handle == keeper::test) {
            handle_ = std::move(handle);
        } else if (keeps_handle == keeper::coroutine) {
            const auto timer = std::make_shared<asio::steady_timer>(*io_);
            timer_ = timer;
            asio::co_spawn(*io_, keep(std::move(handle), timer), asio::detached);
        } else {
            stop_->async_wait([kept = std::move(handle)](turnstile::error_code) {});
        }
        asio::co_spawn(*io_,
                       wait_for_another(*object_, owns_object == owner::waiter ? object_ : nullptr,
                                        waiter_ended_),
                       asio::detached);
        run();
    }

    void take(step s)
    {
        switch (s) {
        case step::object:
            return object_.reset();
        case step::handle:
            return end_keeper();
        case step::run:
            return run();
        case step::context:
            return io_.reset();
        }
    }
    bool waiter_ended() const noexcept { return waiter_ended_; }

private:
    void run()
    {
        if (!io_)
            return;
        io_->restart();
        io_->poll();
    }
    void end_keeper()
    {
        handle_.reset();
        if (!io_)
            return;
        if (const timer_ptr timer = timer_.lock())
            timer->cancel();
        stop_->set();
    }

    bool waiter_ended_ = false;
    std::shared_ptr<int> token_ = std::make_shared<int>();
    std::optional<asio::io_context> io_;
    std::optional<turnstile::event> stop_;
    std::weak_ptr<asio::steady_timer> timer_;
    std::shared_ptr<handle_source> object_;
    std::shared_ptr<void> handle_;
};

namespace data = boost::unit_test::data;

} // namespace

BOOST_TEST_DONT_PRINT_LOG_VALUE(contract::handle_kind)

namespace {

BOOST_AUTO_TEST_SUITE(handles)

// A sanitizer reports each use of freed memory, and each state that is leaked.
BOOST_DATA_TEST_CASE(handles_objects_waiters_and_contexts_may_be_destroyed_in_any_order,
                     data::make(all_kinds), kind)
{
    for (const keeper keeps_handle : {keeper::test, keeper::coroutine, keeper::handler}) {
        for (const owner owns_object : {owner::test, owner::waiter}) {
            std::array order{step::object, step::handle, step::run, step::context};
            do {
                sequence s(kind, keeps_handle, owns_object);
                for (const step next : order)
                    s.take(next);
            } while (std::next_permutation(order.begin(), order.end()));
        }
    }
}

BOOST_DATA_TEST_CASE(the_last_handle_frees_the_state, data::make(all_kinds), kind)
{
    asio::io_context io;
    const auto token = std::make_shared<int>();
    auto object = kind.make(marked(io, token));
    auto handle = object->take();
    object.reset();
    if (kind.keeps_state)
        BOOST_TEST(token.use_count() > 1, "the state was freed while a handle exists");
    handle.reset();
    BOOST_TEST(token.use_count() == 1, "the state is leaked");
}

// A granted wait counts as a handle until it is delivered, also after the object is destroyed.
BOOST_DATA_TEST_CASE(a_grant_delivered_after_the_destruction_frees_the_state, data::make(all_kinds),
                     kind)
{
    asio::io_context io;
    const auto token = std::make_shared<int>();
    auto object = kind.make(marked(io, token));
    auto handle = object->take();
    bool ended = false;
    asio::co_spawn(io, wait_for_another(*object, nullptr, ended), asio::detached);
    io.poll();
    handle.reset(); // grants the other wait, if it had to wait
    object.reset();
    io.restart();
    io.poll();
    if (ended)
        BOOST_TEST(token.use_count() == 1, "the state is leaked");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
