// SPDX-License-Identifier: BSL-1.0
#include <turnstile/channel/detail/queue_state_impl.hpp>
#include <turnstile/channel/detail/list_store.hpp>

namespace turnstile::detail {

template class item_gate<thread_safe, line_store>;
template class item_gate<strand_confined, line_store>;

} // namespace turnstile::detail
