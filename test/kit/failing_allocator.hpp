// SPDX-License-Identifier: BSL-1.0
// An allocator that counts its allocations, and throws std::bad_alloc while its plan says so.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kit {

struct allocation_plan {
    std::size_t allocated = 0; // the number of blocks
    std::size_t freed = 0;
    bool fail = false;

    std::size_t live() const { return allocated - freed; }
};

template <class T>
class failing_allocator {
public:
    using value_type = T;

    explicit failing_allocator(allocation_plan& plan) noexcept : plan_(&plan) {}
    template <class U>
    failing_allocator(const failing_allocator<U>& other) noexcept : plan_(other.plan())
    {
    }

    T* allocate(std::size_t n)
    {
        if (plan_->fail)
            throw std::bad_alloc();
        T* p = std::allocator<T>().allocate(n);
        ++plan_->allocated;
        return p;
    }
    void deallocate(T* p, std::size_t n) noexcept
    {
        ++plan_->freed;
        std::allocator<T>().deallocate(p, n);
    }

    allocation_plan* plan() const noexcept { return plan_; }
    template <class U>
    bool operator==(const failing_allocator<U>& other) const noexcept
    {
        return plan_ == other.plan();
    }

private:
    allocation_plan* plan_;
};

} // namespace kit
