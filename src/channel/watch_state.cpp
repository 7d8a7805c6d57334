#include <turnstile/channel/detail/watch_state.hpp>

namespace turnstile::detail {

template <class Threading>
auto watch_state<Threading>::load() noexcept -> latest
{
    return this->update([&](ready_list&) { return latest{value_, version()}; });
}

template <class Threading>
std::uint64_t watch_state<Threading>::store_locked(node& n, ready_list& ready) noexcept
{
    if (is_closed())
        return 0;
    value_.swap(n);
    const std::uint64_t now = version() + 1;
    version_.store(now, std::memory_order_release);
    this->decide_all(ready, [](waiter& w) { w.grant(); });
    return now;
}

template <class Threading>
std::uint64_t watch_state<Threading>::store(node& n) noexcept
{
    return this->update([&](ready_list& ready) { return store_locked(n, ready); });
}

template <class Threading>
std::uint64_t watch_state<Threading>::store_if(std::uint64_t expected, node& n) noexcept
{
    return this->update(
        [&](ready_list& ready) { return version() == expected ? store_locked(n, ready) : 0; });
}

template <class Threading>
void watch_state<Threading>::close() noexcept
{
    this->update([&](ready_list& ready) {
        closed_.store(true, std::memory_order_release);
        this->decide_all(ready, [](waiter& w) { w.fail(errc::closed); });
    });
}

template <class Threading>
bool watch_state<Threading>::admit(waiter& w) noexcept
{
    const verdict now = changed_since(static_cast<change_waiter&>(w).seen);
    if (now.is_granted())
        w.grant();
    else if (!now.must_wait())
        w.fail(now.code());
    else
        this->queue_.push_back(w);
    return !now.must_wait();
}

template class watch_state<thread_safe>;
template class watch_state<strand_confined>;

} // namespace turnstile::detail
