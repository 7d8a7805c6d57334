// SPDX-License-Identifier: BSL-1.0
// Requests and responses: each request carries the sender of a oneshot, for its answer.

#include <turnstile/channel/oneshot.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <string>
#include <utility>

namespace asio = boost::asio;
using boost::system::error_code;
using namespace asio::experimental::awaitable_operators;

namespace {

// [request-answer]
struct request {
    std::string question;
    turnstile::oneshot_sender<int> answer;
};

asio::awaitable<void> answer(request r)
{
    co_await asio::post(asio::use_awaitable); // look it up
    if (r.question == "six times seven?")
        r.answer.send(42);
    else if (r.question == "one by zero?")
        r.answer.send_error(asio::error::invalid_argument);
    // else the sender is destroyed without sending: the receive reports errc::sender_gone
}
// [/request-answer]

// [request-ask]
asio::awaitable<void> ask(std::string question)
{
    const auto executor = co_await asio::this_coro::executor;
    auto [sender, receiver] = turnstile::oneshot<int>(executor);
    asio::co_spawn(executor, answer({question, std::move(sender)}), asio::detached);

    auto [ec, value] = co_await receiver.async_receive(asio::as_tuple(asio::use_awaitable));
    if (!ec)
        fmt::print("{} {}\n", question, value);
    else
        fmt::print("{} {}\n", question, ec.message());
}
// [/request-ask]

// [request-giveup]
// Works until it is done, or until the receiver is gone.
asio::awaitable<void> ponder(turnstile::oneshot_sender<int> answer)
{
    asio::steady_timer work(co_await asio::this_coro::executor, std::chrono::hours(24));
    co_await (work.async_wait(asio::use_awaitable) || answer.async_wait_receiver_gone());

    error_code ec;
    answer.send(42, ec);
    fmt::print("too late: {}\n", ec.message());
}

asio::awaitable<void> lose_patience()
{
    const auto executor = co_await asio::this_coro::executor;
    auto [sender, receiver] = turnstile::oneshot<int>(executor);
    asio::co_spawn(executor, ponder(std::move(sender)), asio::detached);

    asio::steady_timer patience(executor, std::chrono::milliseconds(1));
    auto first = co_await (receiver.async_receive() || patience.async_wait(asio::use_awaitable));
    fmt::print("{}\n", first.index() == 0 ? "got it" : "gave up");
} // the receiver is destroyed, and ponder() stops
// [/request-giveup]

asio::awaitable<void> all()
{
    co_await ask("six times seven?");
    co_await ask("one by zero?");
    co_await ask("why?");
    co_await lose_patience();
}

} // namespace

int main()
{
    asio::io_context io;
    asio::co_spawn(io, all(), asio::detached);
    io.run();
}
