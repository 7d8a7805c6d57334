// SPDX-License-Identifier: BSL-1.0
// A value whose destructor checks that it is not too late. For results of operations: they must be
// destroyed before the handler, which may own the object that they come from.
#pragma once

#include <boost/test/unit_test.hpp>

#include <memory>
#include <utility>

namespace kit {

class mindful {
public:
    mindful() = default;
    explicit mindful(const bool& is_over) noexcept : over_(&is_over) {}
    mindful(mindful&& other) noexcept : over_(std::exchange(other.over_, nullptr)) {}
    mindful& operator=(mindful&& other) noexcept
    {
        std::swap(over_, other.over_);
        return *this;
    }
    ~mindful()
    {
        if (over_)
            BOOST_TEST(!*over_, "a result outlived its handler");
    }

    explicit operator bool() const noexcept { return over_ != nullptr; }

private:
    const bool* over_ = nullptr;
};

// For a handler to own: sets the flag when the handler is destroyed.
inline std::shared_ptr<void> last_breath(bool& is_over)
{
    return {nullptr, [&](void*) { is_over = true; }};
}

} // namespace kit
