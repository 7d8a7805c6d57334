// SPDX-License-Identifier: BSL-1.0
#include <turnstile/sync/detail/event_state.hpp>

#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Threading>
void event_state<Threading>::set_awaited() noexcept
{
    this->update([&](ready_list& ready) {
        word_.store(flag::set, std::memory_order_release);
        this->decide_all(ready, [](waiter& w) { w.grant(); });
    });
}

template <class Threading>
bool event_state<Threading>::admit(waiter& w) noexcept
{
    flag before = flag::clear;
    const auto await_clear = [&](flag& word) noexcept {
        before = std::exchange(word, flag::awaited);
        return before == flag::clear;
    };
    word_.update(await_clear, std::memory_order_acq_rel);
    if (before == flag::set) {
        w.grant();
        return true;
    }
    this->queue_.push_back(w);
    return false;
}

template <class Threading>
void event_state<Threading>::reconsider(ready_list&) noexcept
{
    if (this->queue_.empty())
        word_.store(flag::clear, std::memory_order_release);
}

template class event_state<thread_safe>;
template class event_state<strand_confined>;

} // namespace turnstile::inline v0_1::detail
