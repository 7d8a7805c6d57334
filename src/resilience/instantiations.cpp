// SPDX-License-Identifier: BSL-1.0
// The states of this layer for both threading policies, with the default clock.
#include <turnstile/resilience/detail/bulkhead_state.hpp>
#include <turnstile/resilience/detail/circuit_breaker_state.hpp>
#include <turnstile/resilience/detail/keyed_rate_limiter_state.hpp>
#include <turnstile/resilience/detail/rate_limiter_state.hpp>

namespace turnstile::inline v0_1::detail {

template class timed_state<thread_safe, default_clock, semaphore_state<thread_safe>>;
template class timed_state<strand_confined, default_clock, semaphore_state<strand_confined>>;

template class circuit_breaker_state<thread_safe, default_clock>;
template class circuit_breaker_state<strand_confined, default_clock>;
template class bulkhead_state<thread_safe, default_clock>;
template class bulkhead_state<strand_confined, default_clock>;
template class rate_limiter_state<thread_safe, default_clock>;
template class rate_limiter_state<strand_confined, default_clock>;
template class keyed_rate_limiter_state<thread_safe, default_clock>;
template class keyed_rate_limiter_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
