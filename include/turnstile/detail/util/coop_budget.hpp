// SPDX-License-Identifier: BSL-1.0
// A budget of short cuts for each thread. A coroutine whose operation need not wait continues
// without suspending; a loop of such operations would keep its thread from all other work. The
// start of a wait (detail/wait/start_wait.hpp) therefore consumes one unit for each short cut, and
// when the budget is used up, one operation suspends and continues behind the work that the
// executor has queued. A coroutine that continues after a wait comes from the scheduler, which has
// had its turn: the budget is reset.
//
// Invariant: of 129 attempts on a thread without a reset in between, at least one is refused.
#pragma once

namespace turnstile::inline v0_1::detail {

class coop_budget {
public:
    static constexpr unsigned size = 128;

    // Returns false, and begins a new budget, if nothing remains.
    static bool try_consume() noexcept
    {
        if (remaining_ == 0) {
            remaining_ = size;
            return false;
        }
        --remaining_;
        return true;
    }

    static void reset() noexcept { remaining_ = size; }

private:
    static inline constinit thread_local unsigned remaining_ = size;
};

} // namespace turnstile::inline v0_1::detail
