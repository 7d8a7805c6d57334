// SPDX-License-Identifier: BSL-1.0
// A task that can be posted without allocating memory: it contains the memory in which the executor
// queues it, so a wake-up neither allocates nor fails. posting_executor posts it. The drain of an
// object, the post to a foreign executor and the retry of a timer are such tasks.
//
// Invariant: each successful post ends with exactly one call of run_function, either to invoke the
// task or, if the executor drops it, to destroy it.
#pragma once

#include <cstddef>

namespace turnstile::inline v0_1::detail {

// The action at the end of a queued task: run it, or destroy it without running it.
enum class task_action { invoke, destroy };

class intrusive_task {
public:
    using run_function = void (*)(intrusive_task&, task_action);

    // Large enough for the queue entry of an io_context or a thread_pool, and just large enough
    // with Asio's handler tracking. A larger entry would go to the heap, which the tests detect.
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
