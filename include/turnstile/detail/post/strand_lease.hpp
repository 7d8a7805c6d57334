// SPDX-License-Identifier: BSL-1.0
// A strand for the time of one call. Components that run operations and may cancel them (select,
// all, task_group) run each call on a strand, because a cancellation signal must not be emitted
// while the operation makes progress on another thread.
//
// On the executors of io_context and thread_pool the strand is a serial_executor, which is used
// again for the next call. An executor that is a strand already is used as it is, and all others
// get an asio::strand. The lease holds outstanding work on the executor.
//
// Invariant: no two leases have the same serial_executor at a time.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/serial_executor.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/strand.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// strand_lease<Executor>: executor() runs functions one after the other, on top of `Executor`.
template <class Executor>
class strand_lease {
public:
    using executor_type = asio::strand<Executor>;

    explicit strand_lease(const Executor& executor) : work_(executor), strand_(executor) {}

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }

private:
    executor_work<Executor> work_;
    executor_type strand_;
};

template <serial_inner Inner>
class strand_lease<Inner> {
public:
    using executor_type = serial_executor<Inner>;

    explicit strand_lease(const Inner& inner)
        : work_(inner), service_(&asio::use_service<serial_service>(inner.context())),
          strand_(service_->take(inner))
    {
    }
    strand_lease(const strand_lease&) = delete;
    strand_lease& operator=(const strand_lease&) = delete;
    ~strand_lease() { service_->give_back(strand_.queue()); }

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }

private:
    executor_work<Inner> work_; // destroyed last: it keeps the context running
    serial_service* service_;
    executor_type strand_;
};

template <class Inner>
class strand_lease<asio::strand<Inner>> {
public:
    using executor_type = asio::strand<Inner>;

    explicit strand_lease(const executor_type& strand) : work_(strand), strand_(strand) {}

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }

private:
    executor_work<executor_type> work_;
    executor_type strand_;
};

template <class Inner, bool tracks_work>
class strand_lease<serial_executor<Inner, tracks_work>> {
public:
    using executor_type = serial_executor<Inner, tracks_work>;

    explicit strand_lease(const executor_type& strand) : work_(strand), strand_(strand) {}

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }

private:
    executor_work<executor_type> work_;
    executor_type strand_;
};

// An any_io_executor is searched for an executor that Asio ships. The strand is an any_io_executor
// itself, so that a coroutine runs on it without another conversion.
template <>
class TURNSTILE_EXPORT strand_lease<asio::any_io_executor> {
public:
    using executor_type = asio::any_io_executor;

    explicit strand_lease(const executor_type& executor);
    strand_lease(const strand_lease&) = delete;
    strand_lease& operator=(const strand_lease&) = delete;
    ~strand_lease();

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept;

private:
    template <class Inner>
    bool take_serial(const executor_type& executor);

    work_guard work_; // destroyed last: it keeps the context running
    serial_service* service_ = nullptr;
    serial_queue* queue_ = nullptr; // of strand_, if that is a serial_executor
    executor_type strand_;
};

// The executor of an object that is confined to a strand already.
template <class Executor>
class confined_lease {
public:
    using executor_type = Executor;

    explicit confined_lease(const executor_type& executor) : work_(executor) {}

    executor_type executor() const noexcept { return work_.get_executor(); }
    bool is_current() const noexcept { return true; }

private:
    executor_work<Executor> work_;
};

// The lease for an object with the given threading policy.
template <class Executor, class Threading>
using policy_lease =
    std::conditional_t<Threading::is_confined, confined_lease<Executor>, strand_lease<Executor>>;

} // namespace turnstile::inline v0_1::detail
