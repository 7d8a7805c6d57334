// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/queue_state_items.hpp>
#include <turnstile/channel/detail/queue_state_waiters.hpp>
#include <turnstile/channel/detail/queue_store.hpp>

namespace turnstile::inline v0_1::detail {

template class queue_state<thread_safe, queue_store>;
template class queue_state<strand_confined, queue_store>;

} // namespace turnstile::inline v0_1::detail
