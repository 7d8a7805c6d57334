// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace turnstile::inline v0_1::detail {

// How something that was queued ends.
enum class task_action { invoke, destroy };

// Something that an executor can be told to run later. It brings the memory in which the
// executor queues it, so that a wake-up neither allocates nor fails.
class intrusive_task {
public:
    using run_function = void (*)(intrusive_task&, task_action);

    // Enough for the queue entry of an io_context or a thread_pool, just so where Asio tracks
    // handlers; a larger one would use the heap, which the tests notice.
    static constexpr std::size_t memory_size = 48;

    explicit intrusive_task(run_function run) noexcept : run_(run) {}
    intrusive_task(const intrusive_task&) = delete;
    intrusive_task& operator=(const intrusive_task&) = delete;

    void invoke() { run_(*this, task_action::invoke); }
    void destroy() { run_(*this, task_action::destroy); }
    void* memory() noexcept { return memory_; }

protected:
    ~intrusive_task() = default;

private:
    alignas(std::max_align_t) std::byte memory_[memory_size];
    run_function run_;
};

} // namespace turnstile::inline v0_1::detail
