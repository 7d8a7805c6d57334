// SPDX-License-Identifier: BSL-1.0
// An allocator with one buffer of Size bytes, which its user owns. It makes an allocation that must
// not fail: an intrusive_task is queued in a buffer of its own, the wait of a coroutine lives in
// the coroutine's frame, and the handler of a timer in the state. A request that does not fit goes
// to the heap.
//
// Invariant: at most one allocation is in the buffer at a time; the user sees to that.
#pragma once

#include <cstddef>
#include <memory>

namespace turnstile::inline v0_1::detail {

template <class T, std::size_t Size>
class buffer_allocator {
public:
    using value_type = T;
    template <class U>
    struct rebind {
        using other = buffer_allocator<U, Size>;
    };

    explicit buffer_allocator(void* buffer) noexcept : buffer_(buffer) {}
    template <class U>
    buffer_allocator(const buffer_allocator<U, Size>& other) noexcept : buffer_(other.buffer())
    {
    }

    T* allocate(std::size_t n)
    {
        if (fits(n))
            return static_cast<T*>(buffer_);
        return std::allocator<T>().allocate(n);
    }

    void deallocate(T* p, std::size_t n) noexcept
    {
        if (!fits(n))
            std::allocator<T>().deallocate(p, n);
    }

    void* buffer() const noexcept { return buffer_; }

    template <class U>
    bool operator==(const buffer_allocator<U, Size>& other) const noexcept
    {
        return buffer_ == other.buffer();
    }

private:
    static constexpr bool fits(std::size_t n) noexcept
    {
        return n == 1 && sizeof(T) <= Size && alignof(T) <= alignof(std::max_align_t);
    }

    void* buffer_;
};

// The form that is passed to an executor, which rebinds it.
template <std::size_t Size>
class buffer_allocator<void, Size> {
public:
    using value_type = void;
    template <class U>
    struct rebind {
        using other = buffer_allocator<U, Size>;
    };

    explicit buffer_allocator(void* buffer) noexcept : buffer_(buffer) {}
    template <class U>
    buffer_allocator(const buffer_allocator<U, Size>& other) noexcept : buffer_(other.buffer())
    {
    }

    void* buffer() const noexcept { return buffer_; }

    template <class U>
    bool operator==(const buffer_allocator<U, Size>& other) const noexcept
    {
        return buffer_ == other.buffer();
    }

private:
    void* buffer_;
};

} // namespace turnstile::inline v0_1::detail
