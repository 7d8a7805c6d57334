// SPDX-License-Identifier: BSL-1.0
#include <turnstile/resilience/detail/keyed_gate.hpp>

namespace turnstile::detail {

template class keyed_gate<thread_safe, default_clock>;
template class keyed_gate<strand_confined, default_clock>;

} // namespace turnstile::detail
