// SPDX-License-Identifier: BSL-1.0
// A primitive built on the library's one mechanism, step by step as doc/design.md tells it:
// a countdown, which lets everybody go when it reaches zero. For those who extend Turnstile;
// users have turnstile::latch, and never need anything from turnstile::detail.

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/detail/wait/io_object.hpp>
#include <turnstile/detail/wait/start_wait.hpp>

#include <boost/asio.hpp>
#include <fmt/core.h>

#include <cstdint>
#include <utility>

namespace asio = boost::asio;
namespace detail = turnstile::detail;

namespace {

// [state]
template <class Threading>
class countdown_state final : public detail::wait_state<Threading> {
public:
    template <class Executor>
    countdown_state(const Executor& executor, std::uint64_t count)
        : detail::wait_state<Threading>(executor), count_(count)
    {
    }

    bool is_open() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

    bool count_down() noexcept
    {
        std::uint64_t before = 0;
        const auto subtract_one = [&](std::uint64_t& count) {
            before = count--;
            return before != 0; // else the count stays as it is
        };
        if (!count_.update(subtract_one, std::memory_order_acq_rel))
            return false;
        if (before == 1)
            open();
        return true;
    }

private:
    // Decide under the lock, deliver after it: update() does both.
    void open() noexcept
    {
        this->update([&](detail::ready_list& ready) {
            this->decide_all(ready, [](detail::waiter& w) { w.grant(); });
        });
    }

    // A new waiter: decide at once, or queue it.
    bool admit(detail::waiter& w) noexcept override
    {
        if (is_open()) {
            w.grant();
            return true;
        }
        this->queue_.push_back(w);
        return false;
    }
    // A waiter was cancelled: it has blocked no other waiter.
    void reconsider(detail::ready_list&) noexcept override {}
    // A granted waiter was cancelled: it had taken nothing.
    void take_back(detail::waiter&, detail::ready_list&) noexcept override {}

    detail::policy_atomic<Threading, std::uint64_t> count_;
};
// [/state]

// [request]
template <class Countdown>
struct countdown_request {
    using executor_type = typename Countdown::executor_type;
    using threading = typename Countdown::threading_policy;
    using result_type = void;
    using waiter_type = detail::waiter;
    static constexpr detail::request_traits traits{.refundable = true}; // there is nothing to lose

    Countdown* countdown;

    const executor_type& executor() const noexcept { return countdown->executor(); }
    countdown_state<threading>& state() const noexcept { return countdown->state(); }
    detail::wait_decision try_now() const noexcept
    {
        return state().is_open() ? detail::wait_decision::granted()
                                 : detail::wait_decision::pending();
    }
    void give_back() const noexcept {}
    void prepare(detail::waiter&) const noexcept {}
};
// [/request]

// [object]
template <class Executor = asio::any_io_executor, class Threading = turnstile::thread_safe>
class basic_countdown : public detail::io_object<Executor, Threading, countdown_state<Threading>> {
    using base = detail::io_object<Executor, Threading, countdown_state<Threading>>;
    using request = countdown_request<basic_countdown>;
    friend request;

public:
    template <class Other>
    struct rebind_executor {
        using other = basic_countdown<Other, Threading>;
    };

    basic_countdown(const Executor& executor, std::uint64_t count) : base(executor, count) {}

    template <turnstile::token_for<void> Token = turnstile::default_token_t<Executor>>
    auto async_wait(Token&& token = Token())
    {
        return detail::start_wait(request{this}, std::forward<Token>(token));
    }

    bool count_down() noexcept { return this->state().count_down(); }
};
// [/object]

using countdown = basic_countdown<>;

asio::awaitable<void> wait_for_all(countdown& done)
{
    fmt::print("waiting for three\n");
    co_await done.async_wait();
    fmt::print("all three are done\n");
}

} // namespace

int main()
{
    asio::io_context io;
    countdown done(io.get_executor(), 3);
    asio::co_spawn(io, wait_for_all(done), asio::detached);
    for (int i = 1; i <= 3; ++i) {
        asio::post(io, [&done, i] {
            fmt::print("{} is done\n", i);
            done.count_down();
        });
    }
    io.run();
    fmt::print("once more: {}\n", done.count_down() ? "counted" : "refused");
}
