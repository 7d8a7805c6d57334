// SPDX-License-Identifier: BSL-1.0
// The pieces of code shown in doc/, compiled and run. Each marked region is quoted there
// word for word; doc/check_snippets.py sees to it.

#include <turnstile/turnstile.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using boost::system::error_code;

namespace {

// Runs one coroutine, and whatever it starts, to its end.
void run(asio::io_context& io, asio::awaitable<void> main)
{
    asio::co_spawn(io, std::move(main), [](const std::exception_ptr& failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();
    io.restart();
}

// ---- The primitives --------------------------------------------------------------------

// [mutex]
asio::awaitable<void> log_twice(turnstile::mutex& mutex, std::vector<int>& log, int entry)
{
    auto lock = co_await mutex.async_lock();
    log.push_back(entry);
    co_await asio::post(asio::use_awaitable); // the lock stays held
    log.push_back(entry);
} // unlocked here
// [/mutex]

asio::awaitable<void> try_lock_and_errors(turnstile::mutex& mutex)
{
    // [try-lock]
    if (const std::unique_lock lock(mutex, std::try_to_lock); lock.owns_lock())
        fmt::print("got it without waiting\n");
    // [/try-lock]

    // [errors]
    error_code ec;
    mutex.unlock(ec); // the mutex is not locked
    if (ec == turnstile::errc::not_locked)
        fmt::print("{}\n", ec.message());
    // [/errors]
    co_return;
}

void show_mutex()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    std::vector<int> log;
    for (int i = 1; i <= 3; ++i)
        asio::co_spawn(io, log_twice(mutex, log, i), asio::detached);
    io.run();
    io.restart();
    fmt::print("log: {}\n", fmt::join(log, " "));
    run(io, try_lock_and_errors(mutex));
}

asio::awaitable<void> use_semaphore(turnstile::semaphore& megabytes)
{
    // [semaphore]
    auto budget = co_await megabytes.async_acquire(300); // all at once, or wait
    auto part = budget.split(100);                       // now 200 and 100
    part.release();                                      // 100 are back
    budget.merge(co_await megabytes.async_acquire(50));  // now 250
    // [/semaphore]
    fmt::print("holding {}, {} left\n", budget.count(), megabytes.available());
}

asio::awaitable<void> misuse_semaphore(turnstile::semaphore& megabytes)
{
    // [semaphore-close]
    megabytes.resize(200);
    auto [ec, none] = co_await megabytes.async_acquire(201, asio::as_tuple(asio::use_awaitable));
    fmt::print("{}\n", ec.message()); // errc::too_large

    megabytes.close();
    std::tie(ec, none) = co_await megabytes.async_acquire(asio::as_tuple(asio::use_awaitable));
    fmt::print("{}\n", ec.message()); // errc::closed
    // [/semaphore-close]
}

void show_semaphore()
{
    asio::io_context io;
    turnstile::semaphore megabytes(io, 1000, 1000);
    run(io, use_semaphore(megabytes));
    run(io, misuse_semaphore(megabytes));
}

// [auto-reset-event]
asio::awaitable<void> consume(std::deque<int>& items, turnstile::auto_reset_event& more)
{
    for (;;) {
        while (!items.empty()) {
            const int item = items.front();
            items.pop_front();
            if (item < 0)
                co_return;
            fmt::print("item {}\n", item);
        }
        co_await more.async_wait(); // a set() that came before this line is not missed
    }
}

void produce(std::deque<int>& items, turnstile::auto_reset_event& more, int item)
{
    items.push_back(item);
    more.set();
}
// [/auto-reset-event]

void show_auto_reset_event()
{
    asio::io_context io;
    std::deque<int> items;
    turnstile::auto_reset_event more(io);
    produce(items, more, 1);
    produce(items, more, 2);
    asio::post(io, [&] { produce(items, more, -1); });
    run(io, consume(items, more));
}

// ---- The tokens ------------------------------------------------------------------------

asio::awaitable<void> tokens_of_a_coroutine(turnstile::mutex& mutex)
{
    // [token-default]
    {
        auto lock = co_await mutex.async_lock(); // throws boost::system::system_error
    }
    // [/token-default]
    fmt::print("default\n");
    // [token-as-tuple]
    {
        auto [ec, lock] = co_await mutex.async_lock(asio::as_tuple(asio::use_awaitable));
    }
    // [/token-as-tuple]
    fmt::print("as_tuple\n");
    // [token-redirect-error]
    {
        error_code ec;
        auto lock = co_await mutex.async_lock(asio::redirect_error(asio::use_awaitable, ec));
    }
    // [/token-redirect-error]
    fmt::print("redirect_error\n");
    // [token-deferred]
    {
        auto later = mutex.async_lock(asio::deferred); // starts nothing
        auto lock = co_await std::move(later);         // starts the operation
    }
    // [/token-deferred]
    fmt::print("deferred\n");
}

// [token-as-default]
using quiet_mutex = asio::as_tuple_t<asio::use_awaitable_t<>>::as_default_on_t<turnstile::mutex>;

asio::awaitable<void> lock_quietly(quiet_mutex& mutex)
{
    auto [ec, lock] = co_await mutex.async_lock();
    fmt::print("as_default_on: {}\n", ec ? "failed" : "locked");
}
// [/token-as-default]

void show_tokens()
{
    asio::io_context io;
    turnstile::mutex mutex(io);
    run(io, tokens_of_a_coroutine(mutex));

    quiet_mutex quiet(io);
    run(io, lock_quietly(quiet));

    // [token-callback]
    mutex.async_lock([](error_code ec, turnstile::mutex::lock_type lock) {
        if (!ec)
            fmt::print("callback: {}\n", lock ? "locked" : "not locked");
    });
    // [/token-callback]
    io.run();
    io.restart();

    asio::thread_pool pool(1);
    turnstile::event ready(pool, true);
    // [token-future]
    std::future<void> waiting = ready.async_wait(asio::use_future);
    waiting.get(); // throws boost::system::system_error
    // [/token-future]
    fmt::print("future\n");
}

// ---- Patterns --------------------------------------------------------------------------

// [guard-write]
// Messages of several coroutines, on one stream: each goes out whole.
template <class Stream>
asio::awaitable<void> send(Stream& stream, turnstile::mutex& writing, std::string message)
{
    auto lock = co_await writing.async_lock();
    const auto length = std::to_string(message.size()) + ":";
    co_await asio::async_write(stream, asio::buffer(length), asio::use_awaitable);
    co_await asio::async_write(stream, asio::buffer(message), asio::use_awaitable);
}
// [/guard-write]

void show_guarded_write()
{
    using protocol = asio::local::stream_protocol;
    asio::io_context io;
    protocol::socket out(io);
    protocol::socket in(io);
    asio::local::connect_pair(out, in);

    turnstile::mutex writing(io);
    asio::co_spawn(io, send(out, writing, "good"), asio::detached);
    asio::co_spawn(io, send(out, writing, "morning"), asio::detached);
    io.run();

    std::array<char, 64> received{};
    const std::size_t n = in.read_some(asio::buffer(received));
    fmt::print("received {}\n", std::string_view(received.data(), n));
}

asio::awaitable<void> fetch(int page, turnstile::semaphore::permit_type /*slot*/)
{
    co_await asio::post(asio::use_awaitable);
    fmt::print("page {}\n", page);
}

// [limit]
asio::awaitable<void> fetch_all(std::vector<int> pages)
{
    auto executor = co_await asio::this_coro::executor;
    turnstile::semaphore slots(executor, 3);
    for (int page : pages) {
        auto slot = co_await slots.async_acquire(); // waits while three are at work
        asio::co_spawn(executor, fetch(page, std::move(slot)), asio::detached);
    }
    auto all = co_await slots.async_acquire(3); // every slot is back: all are done
}
// [/limit]

void show_limit()
{
    asio::io_context io;
    run(io, fetch_all({1, 2, 3, 4, 5}));
}

// [shutdown]
asio::awaitable<void> serve(turnstile::auto_reset_event& request, turnstile::event& stopping)
{
    for (;;) {
        auto first = co_await (stopping.async_wait() || request.async_wait());
        if (first.index() == 0)
            co_return; // a request that came at the same time is still there
        fmt::print("served\n");
    }
}
// [/shutdown]

void show_shutdown()
{
    asio::io_context io;
    turnstile::auto_reset_event request(io, true);
    turnstile::event stopping(io);
    asio::co_spawn(io, serve(request, stopping), asio::detached);
    io.poll();

    stopping.set();
    request.set();
    io.run();
    fmt::print("stopped, request {}\n", request.is_set() ? "kept" : "lost");
}

void show_cancellation_signal()
{
    asio::io_context io;
    turnstile::event ready(io);

    // [cancel]
    asio::cancellation_signal stop;
    ready.async_wait(asio::bind_cancellation_slot(stop.slot(), [](error_code ec) {
        if (ec == asio::error::operation_aborted)
            fmt::print("cancelled\n");
    }));
    stop.emit(asio::cancellation_type::terminal); // only this wait, no other
    // [/cancel]
    io.run();
}

void show_window()
{
    asio::io_context io;
    turnstile::auto_reset_event event(io);
    asio::cancellation_signal stop;

    // [window]
    event.async_wait(asio::bind_cancellation_slot(stop.slot(), [](error_code ec) {
        fmt::print("first: {}\n", ec ? "cancelled" : "signalled");
    }));
    event.async_wait(
        [](error_code ec) { fmt::print("second: {}\n", ec ? "cancelled" : "signalled"); });

    event.set();                                  // grants the first wait; its completion is posted
    stop.emit(asio::cancellation_type::terminal); // the signal passes on to the second wait
    io.run();
    // [/window]
}

// ---- Threads ---------------------------------------------------------------------------

asio::awaitable<void> add_one(turnstile::local::mutex& mutex, int& counter)
{
    auto lock = co_await mutex.async_lock();
    const int before = counter;
    co_await asio::post(asio::use_awaitable);
    counter = before + 1;
}

void show_local()
{
    // [local]
    asio::thread_pool pool(4);
    auto strand = asio::make_strand(pool);
    turnstile::local::mutex mutex(strand);
    int counter = 0;

    for (int i = 0; i != 100; ++i)
        asio::co_spawn(strand, add_one(mutex, counter), asio::detached); // all on the strand
    pool.join();
    // [/local]
    fmt::print("counter: {}\n", counter);
}

// [typed]
using io_executor = asio::io_context::executor_type;
using io_mutex = turnstile::basic_mutex<io_executor, turnstile::strand_confined>;

asio::awaitable<void, io_executor> lock_typed(io_mutex& mutex)
{
    auto lock = co_await mutex.async_lock(); // no type erasure anywhere
    fmt::print("typed: {}\n", lock ? "locked" : "not locked");
}
// [/typed]

void show_typed()
{
    asio::io_context io;
    io_mutex mutex(io);
    asio::co_spawn(io, lock_typed(mutex), asio::detached);
    io.run();
}

} // namespace

int main()
{
    show_mutex();
    show_semaphore();
    show_auto_reset_event();
    show_tokens();
    show_guarded_write();
    show_limit();
    show_shutdown();
    show_cancellation_signal();
    show_window();
    show_local();
    show_typed();
}
