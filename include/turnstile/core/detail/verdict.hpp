#pragma once

#include <turnstile/core/error.hpp>

namespace turnstile::detail {

// What a first, non-waiting look at an operation says: done, refused, or it must wait.
class verdict {
public:
    static constexpr verdict granted() noexcept { return verdict(0); }
    static constexpr verdict wait() noexcept { return verdict(-1); }
    static constexpr verdict refused(errc code) noexcept { return verdict(static_cast<int>(code)); }

    constexpr bool is_granted() const noexcept { return value_ == 0; }
    constexpr bool must_wait() const noexcept { return value_ < 0; }
    error_code error() const noexcept
    {
        return value_ > 0 ? make_error_code(code()) : error_code();
    }
    constexpr errc code() const noexcept { return static_cast<errc>(value_); }

private:
    constexpr explicit verdict(int value) noexcept : value_(value) {}
    int value_;
};

} // namespace turnstile::detail
