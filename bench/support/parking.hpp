// SPDX-License-Identifier: BSL-1.0
// Suspends coroutines between two rounds of a benchmark, at almost no cost.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace bench {

class parking {
public:
    // Holds up to `room` coroutines.
    explicit parking(std::size_t room) : parked_(new place[room]), leaving_(new place[room]) {}

    // To be awaited: suspends until resume_all().
    auto park()
    {
        return boost::asio::async_initiate<const boost::asio::deferred_t&, void()>(
            [this](auto handler) { parked_[size_++].put(std::move(handler)); },
            boost::asio::deferred);
    }

    std::size_t size() const noexcept { return size_; }

    void resume_all()
    {
        std::swap(parked_, leaving_);
        const std::size_t leaving = std::exchange(size_, 0);
        for (std::size_t i = 0; i != leaving; ++i)
            leaving_[i].resume();
    }

private:
    // Holds the handler of a suspended coroutine, type-erased in place.
    class place {
    public:
        place() noexcept = default;
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place()
        {
            if (take_out_ != nullptr)
                take_out_(memory_, false);
        }

        template <class Handler>
        void put(Handler handler) noexcept
        {
            static_assert(sizeof(Handler) <= sizeof(memory_));
            new (memory_) Handler(std::move(handler));
            take_out_ = [](void* memory, bool resume) {
                auto* stored = static_cast<Handler*>(memory);
                Handler taken(std::move(*stored));
                stored->~Handler();
                if (resume)
                    std::move(taken)();
            };
        }

        void resume() { std::exchange(take_out_, nullptr)(memory_, true); }

    private:
        alignas(std::max_align_t) std::byte memory_[32];
        void (*take_out_)(void*, bool) = nullptr;
    };

    std::unique_ptr<place[]> parked_;
    std::unique_ptr<place[]> leaving_;
    std::size_t size_ = 0;
};

} // namespace bench
