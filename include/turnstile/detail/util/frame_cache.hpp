// SPDX-License-Identifier: BSL-1.0
// A cache for the frame of the nested coroutine that a wait returns: each thread keeps one frame
// for each kind of operation, and reuses it for the next call. Asio's own recycler keeps two frames
// for all coroutines of a thread; without this cache the frames of waits would displace the
// frames of the program's coroutines.
//
// frame_cache is the kept frame. A coroutine that returns an asio::awaitable uses it if its first
// parameter is the tag cached_frame: std::coroutine_traits then names cached_frame_promise, which
// derives from Asio's promise and has another operator new.
//
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
class frame_cache {
public:
    static void* take(std::size_t size)
    {
        void* const frame = kept_.frame;
        if (!frame || kept_.size != size) [[unlikely]]
            return allocate(size);
        kept_.frame = nullptr;
        return frame;
    }

    static void put(void* frame, std::size_t size) noexcept
    {
        if (kept_.frame || kept_.size != size) [[unlikely]]
            return keep_or_free(frame, size);
        kept_.frame = frame;
    }

    // Larger frames are not kept, neither here nor by Asio.
    static constexpr std::size_t largest = TURNSTILE_KEEPS_FRAMES ? 1024 : 0;

private:
    // A trivial type, because a thread_local with a constructor is guarded at every use. The size
    // is that of the frames to keep. It is 0 before the first frame is returned and at the end of
    // the thread, and no frame is kept then. If translation units with different optimisation
    // produce several sizes, the first one is kept.
    struct kept_frame {
        void* frame;
        std::size_t size;
    };

    // Sets the size of the frames to keep, and frees the kept frame when the thread ends.
    struct size_setter {
        explicit size_setter(std::size_t size) noexcept { kept_.size = size <= largest ? size : 0; }
        size_setter(const size_setter&) = delete;
        size_setter& operator=(const size_setter&) = delete;
        ~size_setter()
        {
            const std::size_t size = std::exchange(kept_.size, 0);
            if (kept_.frame)
                deallocate(std::exchange(kept_.frame, nullptr), size);
        }
    };

    TURNSTILE_COLD static void keep_or_free(void* frame, std::size_t size) noexcept
    {
        static thread_local const size_setter set(size);
        if (kept_.frame || kept_.size != size)
            deallocate(frame, size);
        else
            kept_.frame = frame;
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

    static inline constinit thread_local kept_frame kept_{};
};

// The tag of a coroutine whose frame is kept. Such a coroutine can await operations, but not other
// awaitables.
struct cached_frame {};

template <class AsioPromise, class... Parameters>
struct cached_frame_promise : AsioPromise {
    using memory = frame_cache<AsioPromise, Parameters...>;

    static void* operator new(std::size_t size) { return memory::take(size); }
    static void operator delete(void* frame, std::size_t size) noexcept
    {
        memory::put(frame, size);
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
struct std::coroutine_traits<boost::asio::awaitable<T, Executor>, turnstile::detail::cached_frame,
                             Args...> {
private:
    using asio_promise =
        typename std::coroutine_traits<boost::asio::awaitable<T, Executor>, Args...>::promise_type;

public:
    using promise_type = turnstile::detail::cached_frame_promise<asio_promise, Args...>;

    static_assert(sizeof(promise_type) == sizeof(asio_promise));
    static_assert(alignof(promise_type) == alignof(asio_promise));
};
