// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/rate_gate.hpp>

namespace turnstile::detail {

template class rate_gate<thread_safe, default_clock>;
template class rate_gate<strand_confined, default_clock>;

} // namespace turnstile::detail
