// SPDX-License-Identifier: BSL-1.0
// A stage for a pipeline, written with public names alone: it refuses calls while a service is
// being maintained, and counts the failures of the others.

#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/resilience/pipeline.hpp>
#include <turnstile/resilience/stage.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <utility>

namespace asio = boost::asio;

namespace {

// [stage]
class maintenance_stage {
public:
    explicit maintenance_stage(const asio::any_io_executor& executor) : executor_(executor) {}

    template <turnstile::operation Op, turnstile::operation_token_for<Op> Token>
    auto async_call(Op&& op, Token&& token)
    {
        return asio::async_initiate<Token, turnstile::operation_signature_t<Op>>(
            [this](auto handler, auto inner) {
                using op_type = decltype(inner);
                if (maintenance) {
                    const turnstile::error_code refusal = turnstile::errc::rejected;
                    turnstile::post_failure<op_type>(std::move(handler), executor_, refusal);
                    return;
                }
                auto counting = turnstile::observe_completion<op_type>(
                    std::move(handler),
                    [this](const turnstile::failure& f) { failures += f ? 1 : 0; });
                turnstile::start_operation(std::move(inner), executor_, std::move(counting));
            },
            token, std::forward<Op>(op));
    }

    bool maintenance = false;
    int failures = 0;

private:
    asio::any_io_executor executor_;
};
// [/stage]

asio::awaitable<void> run()
{
    const auto executor = co_await asio::this_coro::executor;
    // [use]
    maintenance_stage gate(executor);
    const auto requests = turnstile::pipeline(executor).retry({.max_attempts = 2}).stage(gate);
    // [/use]

    int attempts = 0;
    const auto request = [&]() -> asio::awaitable<int> {
        if (++attempts == 1)
            throw turnstile::system_error(asio::error::connection_reset);
        co_return 42;
    };
    fmt::print("The answer: {}\n", co_await requests.async_call(request));
    fmt::print("Attempts: {}, failures seen by the stage: {}\n", attempts, gate.failures);
    gate.maintenance = true;
    try {
        co_await requests.async_call(request);
    } catch (const turnstile::system_error& e) {
        fmt::print("Refused: {}\n", e.code() == turnstile::errc::rejected);
    }
}

} // namespace

int main()
{
    asio::io_context io;
    asio::co_spawn(io, run(), asio::detached);
    io.run();
}
