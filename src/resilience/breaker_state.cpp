// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/breaker_state.hpp>

namespace turnstile::detail {

template class breaker_state<thread_safe, default_clock>;
template class breaker_state<strand_confined, default_clock>;

} // namespace turnstile::detail
