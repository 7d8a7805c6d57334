// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/bulkhead_state.hpp>

namespace turnstile::detail {

template class timed_state<thread_safe, default_clock, permit_gate<thread_safe>>;
template class timed_state<strand_confined, default_clock, permit_gate<strand_confined>>;
template class bulkhead_state<thread_safe, default_clock>;
template class bulkhead_state<strand_confined, default_clock>;

} // namespace turnstile::detail
