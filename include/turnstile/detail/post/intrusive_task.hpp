// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace turnstile::detail {

// How something that was queued ends.
enum class how { invoke, destroy };

// Something that an executor can be told to run later. It brings the memory in which the
// executor queues it, so that a wake-up neither allocates nor fails.
class postable {
public:
    using run_function = void (*)(postable&, how);

    // Enough for the queue entry of an io_context or a thread_pool, just so where Asio tracks
    // handlers; a larger one would use the heap, which the tests notice.
    static constexpr std::size_t memory_size = 48;

    explicit postable(run_function run) noexcept : run_(run) {}
    postable(const postable&) = delete;
    postable& operator=(const postable&) = delete;

    void invoke() { run_(*this, how::invoke); }
    void destroy() { run_(*this, how::destroy); }
    void* memory() noexcept { return memory_; }

protected:
    ~postable() = default;

private:
    alignas(std::max_align_t) std::byte memory_[memory_size];
    run_function run_;
};

} // namespace turnstile::detail
