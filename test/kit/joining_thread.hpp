// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <thread>
#include <utility>

namespace kit {

// A thread that is joined when it is destroyed. libc++ has no std::jthread by default.
class joining_thread {
public:
    template <class F>
    explicit joining_thread(F&& f) : thread_(std::forward<F>(f))
    {
    }
    joining_thread(joining_thread&&) noexcept = default;
    joining_thread& operator=(joining_thread&&) = delete;
    ~joining_thread()
    {
        if (thread_.joinable())
            thread_.join();
    }

    void join() { thread_.join(); }

private:
    std::thread thread_;
};

} // namespace kit
