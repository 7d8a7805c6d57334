#pragma once

namespace turnstile::detail {

// A loop of operations that never wait would keep its thread from everything else. So one
// in every 129 suspends for real, and goes behind whatever the executor has queued.
class shortcut_budget {
public:
    static constexpr unsigned size = 128;

    static bool spend() noexcept
    {
        if (left_ == 0) {
            left_ = size;
            return false;
        }
        --left_;
        return true;
    }

private:
    static inline constinit thread_local unsigned left_ = size;
};

} // namespace turnstile::detail
