// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

template <class Executor>
using tracked_t = std::decay_t<decltype(asio::prefer(std::declval<const Executor&>(),
                                                     asio::execution::outstanding_work.tracked))>;

using io_executor = asio::io_context::executor_type;
using pool_executor = asio::thread_pool::executor_type;

// Outstanding work on one execution context: run() does not return while it is held. Who waits
// alone takes it up and gives it up each time. So what it nearly always is stays out of the
// variant, which would be visited at every turn.
class work_guard {
public:
    work_guard() noexcept = default;
    work_guard(work_guard&& other) noexcept { take_from(other); }
    work_guard& operator=(work_guard&& other) noexcept
    {
        io_.reset();
        other_.reset();
        take_from(other);
        return *this;
    }

    explicit operator bool() const noexcept { return io_ || other_; }

    // Takes it up where there was none.
    template <class Tracked>
    void track(Tracked executor)
    {
        if constexpr (std::is_same_v<Tracked, tracked_t<io_executor>>)
            io_.emplace(std::move(executor));
        else
            other_.emplace(std::move(executor));
    }
    work_guard take() noexcept { return std::move(*this); }

private:
    using other_work = std::variant<tracked_t<pool_executor>, tracked_t<asio::any_io_executor>>;

    void take_from(work_guard& from) noexcept
    {
        if (from.io_) [[likely]] {
            io_.emplace(std::move(*from.io_));
            from.io_.reset();
        } else if (from.other_) {
            take_other(from);
        }
    }
    TURNSTILE_COLD void take_other(work_guard& from) noexcept
    {
        other_.emplace(std::move(*from.other_));
        from.other_.reset();
    }

    std::optional<tracked_t<io_executor>> io_;
    std::optional<other_work> other_;
};

} // namespace turnstile::inline v0_1::detail
