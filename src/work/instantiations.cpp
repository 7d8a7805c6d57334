// SPDX-License-Identifier: BSL-1.0
// The states of this layer for both threading policies, with the default clock.
#include <turnstile/work/detail/cancellation_source_state.hpp>
#include <turnstile/work/detail/resource_pool_state.hpp>

namespace turnstile::inline v0_1::detail {

template class timed_state<thread_safe, default_clock, cancellation_waiters<thread_safe>>;
template class timed_state<strand_confined, default_clock, cancellation_waiters<strand_confined>>;
template class cancellation_source_state<thread_safe, default_clock>;
template class cancellation_source_state<strand_confined, default_clock>;
template class timed_state<thread_safe, default_clock, pool_waits<thread_safe>>;
template class timed_state<strand_confined, default_clock, pool_waits<strand_confined>>;
template class resource_pool_state<thread_safe, default_clock>;
template class resource_pool_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
