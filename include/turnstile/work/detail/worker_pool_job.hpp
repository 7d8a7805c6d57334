// SPDX-License-Identifier: BSL-1.0
// The jobs of a worker_pool: each is one block of memory with the job of the user, and the store in
// which jobs wait for a worker. The stores are those of queue and priority_queue.
//
// Ownership: a job that is queued or runs belongs to the state. Before and after that, the job of
// async_run belongs to its operation, which takes the result from it.
//
// Invariant: no job is made or destroyed under the lock.
#pragma once

#include <turnstile/channel/detail/priority_queue_store.hpp>
#include <turnstile/channel/detail/queue_node.hpp>
#include <turnstile/channel/detail/queue_store.hpp>
#include <turnstile/core/clock.hpp>
#include <turnstile/detail/util/block_cache.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

struct no_item_id {};
using prioritised_jobs = priority_queue_store<int, std::less<int>, no_item_id>;

struct pool_waiter;

class pool_job : public prioritised_jobs::node {
public:
    explicit pool_job(int job_priority) noexcept { set_priority(std::move(job_priority)); }
    pool_job(const pool_job&) = delete;
    pool_job& operator=(const pool_job&) = delete;
    virtual ~pool_job() = default;

    // The size is that of the derived type.
    static void* operator new(std::size_t size) { return allocate_block(size); }
    static void operator delete(void* memory, std::size_t size) noexcept
    {
        free_block(memory, size);
    }
    static void* operator new(std::size_t size, std::align_val_t alignment)
    {
        return ::operator new(size, alignment);
    }
    static void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept
    {
        ::operator delete(memory, alignment);
    }

    // Whether the job was made by async_run, which takes the result; constant.
    bool has_caller = false;
    // The lock of the state guards the members below.
    pool_waiter* caller = nullptr; // of a queued or running job; null if the caller has left
    void* runner = nullptr;        // the pool_worker of a running job
    nanoseconds submitted{};
};

using pool_job_ptr = std::unique_ptr<pool_job>;

template <class Job>
struct typed_pool_job : pool_job {
    using job_type = Job;

    template <class J>
    typed_pool_job(int job_priority, J&& j) : pool_job(job_priority), value(std::forward<J>(j))
    {
    }
    Job value;
};

// The result of a job for its caller. It may be void.
template <class Result>
class pool_result {
public:
    template <class... Args>
    void emplace(Args&&... args)
    {
        value_.emplace(std::forward<Args>(args)...);
    }
    Result&& operator*() noexcept { return std::move(*value_); }

private:
    std::optional<Result> value_;
};
template <>
class pool_result<void> {
};

template <class Job, class Result>
struct pool_job_with_result final : typed_pool_job<Job> {
    template <class J>
    pool_job_with_result(int job_priority, J&& j)
        : typed_pool_job<Job>(job_priority, std::forward<J>(j))
    {
        this->has_caller = true;
    }
    pool_result<Result> result;
    std::exception_ptr thrown;
};

// The queued jobs, first in first out or by priority. Used under the lock.
class pool_jobs {
public:
    explicit pool_jobs(bool by_priority) noexcept : by_priority_(by_priority) {}

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    void insert(pool_job& j) noexcept
    {
        ++size_;
        by_priority_ ? sorted_.insert(j) : fifo_.insert(j);
    }
    void erase(pool_job& j) noexcept
    {
        --size_;
        by_priority_ ? sorted_.erase(j) : fifo_.erase(j);
    }
    pool_job& take_next() noexcept
    {
        auto& next = static_cast<pool_job&>(by_priority_ ? sorted_.next() : fifo_.next());
        erase(next);
        return next;
    }

private:
    const bool by_priority_;
    std::size_t size_ = 0;
    queue_store fifo_{queue_order::fifo};
    prioritised_jobs sorted_{std::less<int>()};
};

} // namespace turnstile::inline v0_1::detail
