// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace turnstile::inline v0_1::detail {

// A loop of operations that never wait would keep its thread from everything else. So after
// 128 of them one suspends for real, and goes behind whatever the executor has queued. When a
// coroutine goes on that has waited, its thread comes from the scheduler: the count begins anew.
class coop_budget {
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

    static void renew() noexcept { left_ = size; }

private:
    static inline constinit thread_local unsigned left_ = size;
};

} // namespace turnstile::inline v0_1::detail
