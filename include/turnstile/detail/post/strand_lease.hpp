// SPDX-License-Identifier: BSL-1.0
// A strand for the time of one call. Components that run operations and may cancel them (select,
// all, task_group) run each call on a strand, because a cancellation signal must not be emitted
// while the operation makes progress on another thread.
//
// Making a strand allocates memory twice. For the executors that Asio ships, the strands of ended
// calls are therefore kept by a service of the execution context (strand_cache) and used again. An
// executor that is a strand already is used as it is.
//
// Invariants: no two leases have the same cached strand at a time. A strand returns to the cache
// only by give_back(), which the owner calls on the strand when nothing else is queued there: a
// strand whose executor had no memory to run it never runs again, and must not be reused.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/util/synchronization.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/strand.hpp>

#include <concepts>
#include <cstddef>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

// The strands of an execution context that are not in use. All have the same inner executor,
// because executors of this type differ by their context only.
template <class Inner>
class strand_cache : public asio::execution_context::service {
public:
    using strand_type = asio::strand<Inner>;
    using key_type = strand_cache;
    TURNSTILE_EXPORT static asio::execution_context::id id;

    explicit strand_cache(asio::execution_context& context)
        : asio::execution_context::service(context)
    {
        idle_.reserve(capacity);
    }

    strand_type take(const Inner& inner)
    {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                strand_type strand(std::move(idle_.back()));
                idle_.pop_back();
                return strand;
            }
        }
        return strand_type(inner);
    }

    void give_back(strand_type strand) noexcept
    {
        const std::lock_guard lock(mutex_);
        if (!is_shut_down_ && idle_.size() < capacity)
            idle_.push_back(std::move(strand));
    }

private:
    static constexpr std::size_t capacity = 256;

    // The strands refer to a service of the same context.
    void shutdown() override
    {
        std::vector<strand_type> dropped;
        const std::lock_guard lock(mutex_);
        is_shut_down_ = true;
        dropped.swap(idle_);
    }

    spin_mutex mutex_;
    std::vector<strand_type> idle_;
    bool is_shut_down_ = false;
};

template <class Inner>
concept cached_inner = std::same_as<Inner, io_executor> || std::same_as<Inner, pool_executor>;

extern template class TURNSTILE_EXPORT strand_cache<io_executor>;
extern template class TURNSTILE_EXPORT strand_cache<pool_executor>;

// A strand whose inner executor may be cached.
template <class Inner>
class leased_strand {
public:
    explicit leased_strand(const Inner& inner)
        : strand_([&] {
              if constexpr (cached_inner<Inner>)
                  return asio::use_service<strand_cache<Inner>>(inner.context()).take(inner);
              else
                  return asio::strand<Inner>(inner);
          }())
    {
    }

    const asio::strand<Inner>& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }

    // Called on the strand, once, when nothing else is queued there.
    void give_back() noexcept
    {
        if constexpr (cached_inner<Inner>) {
            auto& context = strand_.get_inner_executor().context();
            asio::use_service<strand_cache<Inner>>(context).give_back(strand_);
        }
    }

private:
    asio::strand<Inner> strand_;
};

// strand_lease<Executor>: executor() runs functions one after the other, on top of `Executor`.
template <class Executor>
class strand_lease : public leased_strand<Executor> {
public:
    using executor_type = asio::strand<Executor>;
    using leased_strand<Executor>::leased_strand;
};

template <class Inner>
class strand_lease<asio::strand<Inner>> {
public:
    using executor_type = asio::strand<Inner>;

    explicit strand_lease(const executor_type& strand) noexcept : strand_(strand) {}

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept { return strand_.running_in_this_thread(); }
    void give_back() noexcept {}

private:
    executor_type strand_;
};

// An any_io_executor is searched for an executor that Asio ships. The strand is an any_io_executor
// itself, so that a coroutine runs on it without another conversion.
template <>
class TURNSTILE_EXPORT strand_lease<asio::any_io_executor> {
public:
    using executor_type = asio::any_io_executor;

    explicit strand_lease(const executor_type& executor);

    const executor_type& executor() const noexcept { return strand_; }
    bool is_current() const noexcept;
    void give_back() noexcept;

private:
    enum class kind { io, pool, uncached };

    kind kind_ = kind::uncached;
    executor_type strand_;
};

// The executor of an object that is confined to a strand already.
template <class Executor>
class confined_lease {
public:
    using executor_type = Executor;

    explicit confined_lease(const executor_type& executor) noexcept : executor_(executor) {}

    const executor_type& executor() const noexcept { return executor_; }
    bool is_current() const noexcept { return true; }
    void give_back() noexcept {}

private:
    executor_type executor_;
};

// The lease for an object with the given threading policy.
template <class Executor, class Threading>
using policy_lease =
    std::conditional_t<Threading::is_confined, confined_lease<Executor>, strand_lease<Executor>>;

} // namespace turnstile::inline v0_1::detail
