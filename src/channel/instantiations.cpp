// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/list_store.hpp>
#include <turnstile/channel/detail/queue_state_impl.hpp>

namespace turnstile::inline v0_1::detail {

template class queue_state<thread_safe, list_store>;
template class queue_state<strand_confined, list_store>;

} // namespace turnstile::inline v0_1::detail
