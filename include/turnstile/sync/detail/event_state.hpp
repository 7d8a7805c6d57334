// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

// A flag, and those who wait for it: raising it lets all of them go.
//
// While nobody waits, the flag changes by compare-and-swap; the first waiter marks it
// `awaited`, and then it is raised under the lock. It is never both.
template <class Threading>
class TURNSTILE_EXPORT event_state : public wait_state<Threading> {
public:
    template <class Executor>
    event_state(const Executor& executor, bool raised)
        : wait_state<Threading>(executor), word_(raised ? flag::raised : flag::lowered)
    {
    }

    bool is_raised() const noexcept
    {
        return word_.load(std::memory_order_acquire) == flag::raised;
    }

    // Written even if it is raised already, so that whoever lowers it next sees what the
    // caller did before.
    void raise() noexcept
    {
        const auto raise_unawaited = [](flag& word) noexcept {
            return std::exchange(word, flag::raised) != flag::awaited;
        };
        if (!word_.update(raise_unawaited, std::memory_order_acq_rel))
            raise_awaited();
    }

    void lower() noexcept
    {
        const auto lower_raised = [](flag& word) noexcept {
            return std::exchange(word, flag::lowered) == flag::raised;
        };
        word_.update(lower_raised, std::memory_order_acq_rel);
    }

private:
    enum class flag : unsigned char { lowered, awaited, raised };

    void raise_awaited() noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}

    policy_atomic<Threading, flag> word_;
};

extern template class event_state<thread_safe>;
extern template class event_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
