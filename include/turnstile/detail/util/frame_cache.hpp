// SPDX-License-Identifier: BSL-1.0
// A cache for the frame of the nested coroutine that a wait returns: each thread keeps one frame
// for each kind of operation, and reuses it for the next call. Asio's own recycler keeps two frames
// for all coroutines of a thread; without this cache the frames of waits would displace the
// frames of the program's coroutines.
//
// A coroutine that returns an asio::awaitable opts in by a first parameter of the type frame_cache:
// std::coroutine_traits then names a promise that derives from Asio's and has another operator new.
// Invariant: the promise adds no data, because Asio finds the frame by the promise's address.
#pragma once

#include <turnstile/core/config.hpp>
#include <turnstile/core/export.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <coroutine>
#include <cstddef>
#include <new>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The frame that a thread keeps for the next call of the same coroutine. All other frames are
// allocated and freed by Asio's promise.
template <class AsioPromise, class... Parameters>
class frame_slot {
public:
    static void* take(std::size_t size)
    {
        void* const frame = slot_.frame;
        if (!frame || slot_.size != size) [[unlikely]]
            return allocate(size);
        slot_.frame = nullptr;
        return frame;
    }

    static void give_back(void* frame, std::size_t size) noexcept
    {
        if (slot_.frame || slot_.size != size) [[unlikely]]
            return keep_or_free(frame, size);
        slot_.frame = frame;
    }

    // Larger frames are not kept, neither here nor by Asio.
    static constexpr std::size_t largest = TURNSTILE_KEEPS_FRAMES ? 1024 : 0;

private:
    // A trivial type, because a thread_local with a constructor is guarded at every use. The size
    // is that of the frames to keep. It is 0 before the first frame is returned and at the end of
    // the thread, and no frame is kept then. If translation units with different optimisation
    // produce several sizes, the first one is kept.
    struct slot {
        void* frame;
        std::size_t size;
    };

    // Sets the size of the slot, and frees its frame when the thread ends.
    struct opener {
        explicit opener(std::size_t size) noexcept { slot_.size = size <= largest ? size : 0; }
        opener(const opener&) = delete;
        opener& operator=(const opener&) = delete;
        ~opener()
        {
            const std::size_t size = std::exchange(slot_.size, 0);
            if (slot_.frame)
                deallocate(std::exchange(slot_.frame, nullptr), size);
        }
    };

    TURNSTILE_COLD static void keep_or_free(void* frame, std::size_t size) noexcept
    {
        static thread_local const opener opened(size);
        if (slot_.frame || slot_.size != size)
            deallocate(frame, size);
        else
            slot_.frame = frame;
    }

    // Asio's promise has no operator new if BOOST_ASIO_DISABLE_AWAITABLE_FRAME_RECYCLING is
    // defined.
    TURNSTILE_COLD static void* allocate(std::size_t size)
    {
        if constexpr (requires { AsioPromise::operator new(size); })
            return AsioPromise::operator new(size);
        else
            return ::operator new(size);
    }
    static void deallocate(void* frame, std::size_t size) noexcept
    {
        if constexpr (requires { AsioPromise::operator delete(frame, size); })
            AsioPromise::operator delete(frame, size);
        else
            ::operator delete(frame);
    }

    static inline constinit thread_local slot slot_{};
};

// The first parameter of a coroutine whose frame is kept. Such a coroutine can await operations,
// but not other awaitables.
struct frame_cache {};

template <class AsioPromise, class... Parameters>
struct kept_promise : AsioPromise {
    using memory = frame_slot<AsioPromise, Parameters...>;

    static void* operator new(std::size_t size) { return memory::take(size); }
    static void operator delete(void* frame, std::size_t size) noexcept
    {
        memory::give_back(frame, size);
    }

    auto await_transform(asio::this_coro::cancellation_state_t what) noexcept
    {
        return AsioPromise::await_transform(what);
    }
    // Not inlined, so that a coroutine that does not suspend does not pay for it.
    template <class Operation>
    TURNSTILE_NOINLINE auto await_transform(Operation&& operation)
    {
        return AsioPromise::await_transform(std::forward<Operation>(operation));
    }
};

} // namespace turnstile::inline v0_1::detail

template <class T, class Executor, class... Args>
struct std::coroutine_traits<boost::asio::awaitable<T, Executor>, turnstile::detail::frame_cache,
                             Args...> {
private:
    using asio_promise =
        typename std::coroutine_traits<boost::asio::awaitable<T, Executor>, Args...>::promise_type;

public:
    using promise_type = turnstile::detail::kept_promise<asio_promise, Args...>;

    static_assert(sizeof(promise_type) == sizeof(asio_promise));
    static_assert(alignof(promise_type) == alignof(asio_promise));
};
