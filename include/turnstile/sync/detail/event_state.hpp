// SPDX-License-Identifier: BSL-1.0
// The state of event, and the base of latch_state: a flag, and the operations that wait for it.
// Setting it grants all of them.
//
// The word has one of three values:
//
//   clear      The flag is clear and no operation waits.
//   awaited    The flag is clear and operations wait. It is set under the lock.
//   set        The flag is set and no operation waits.
//
// It changes by compare-and-swap, except from `awaited`, which it leaves only under the lock.
#pragma once

#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
class TURNSTILE_EXPORT event_state : public wait_state<Threading> {
public:
    template <class Executor>
    event_state(const Executor& executor, bool set)
        : wait_state<Threading>(executor), word_(set ? flag::set : flag::clear)
    {
    }

    bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == flag::set; }

    // The word is written even if it is set already, so that the next clear() happens after this
    // call.
    void set() noexcept
    {
        const auto set_unawaited = [](flag& word) noexcept {
            return std::exchange(word, flag::set) != flag::awaited;
        };
        if (!word_.update(set_unawaited, std::memory_order_acq_rel))
            set_awaited();
    }

    void clear() noexcept
    {
        const auto clear_set = [](flag& word) noexcept {
            return std::exchange(word, flag::clear) == flag::set;
        };
        word_.update(clear_set, std::memory_order_acq_rel);
    }

private:
    enum class flag : unsigned char { clear, awaited, set };

    void set_awaited() noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter&, ready_list&) noexcept override {}

    policy_atomic<Threading, flag> word_;
};

extern template class event_state<thread_safe>;
extern template class event_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
