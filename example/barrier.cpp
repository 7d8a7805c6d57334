// SPDX-License-Identifier: BSL-1.0
// Three workers meet at a checkpoint: all of them arrive before any of them continues. Then a
// barrier of several rounds, with an action that runs at the end of each.

#include <turnstile/sync/barrier.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <string>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

// ---- A checkpoint ----------------------------------------------------------------------

// [barrier]
asio::awaitable<void> worker(int id, turnstile::barrier& checkpoint)
{
    for (int i = 0; i != id; ++i)
        co_await asio::post(asio::use_awaitable); // prepares itself
    fmt::print("Worker {} reached barrier\n", id);
    co_await checkpoint.async_arrive_and_wait();
    fmt::print("Worker {} continuing\n", id);
}

asio::awaitable<void> meet()
{
    turnstile::barrier checkpoint(co_await asio::this_coro::executor, 3);
    co_await (worker(0, checkpoint) && worker(1, checkpoint) && worker(2, checkpoint));
    fmt::print("All workers continuing\n");
}
// [/barrier]

// ---- Phases ----------------------------------------------------------------------------

// [barrier-phases]
asio::awaitable<void> simulate(turnstile::barrier& step, int steps)
{
    for (int i = 1; i != steps; ++i) {
        // ... its part of the step ...
        const std::size_t index = co_await step.async_arrive_and_wait();
        if (index == 0) // one of the parties: the first to arrive
            fmt::print("all parties continue\n");
    }
    step.arrive_and_drop(); // the later rounds do not wait for this party
}
// [/barrier-phases]

void phases()
{
    asio::io_context io;
    int steps = 0;
    turnstile::barrier step(io, 2, {.action = [&] { fmt::print("step {} is done\n", ++steps); }});
    asio::co_spawn(io, simulate(step, 2), asio::detached);
    asio::co_spawn(io, simulate(step, 3), asio::detached);
    io.run();
    fmt::print("{} parties are left\n", step.parties());
}

// ---- A cancelled party -----------------------------------------------------------------

asio::awaitable<void> wait_with_others(turnstile::barrier& b, std::string name)
{
    auto [ec, index] = co_await b.async_arrive_and_wait(asio::as_tuple(asio::use_awaitable));
    fmt::print("{}: {}\n", name, ec.message());
}

void broken()
{
    asio::io_context io;
    turnstile::barrier b(io, 3, {.on_cancel = turnstile::cancelled_party::breaks_barrier});
    asio::cancellation_signal cancel_alice;
    asio::co_spawn(io, wait_with_others(b, "Alice"),
                   asio::bind_cancellation_slot(cancel_alice.slot(), asio::detached));
    asio::co_spawn(io, wait_with_others(b, "Bob"), asio::detached);
    io.poll();
    cancel_alice.emit(asio::cancellation_type::terminal);
    io.run();
    fmt::print("broken: {}\n", b.broken());
}

} // namespace

int main()
{
    asio::io_context io;
    asio::co_spawn(io, meet(), asio::detached);
    io.run();
    phases();
    broken();
}
