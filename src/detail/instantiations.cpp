// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/wait/timed_state.hpp>

namespace turnstile::inline v0_1::detail {

template class timed_state<thread_safe, default_clock>;
template class timed_state<strand_confined, default_clock>;

} // namespace turnstile::inline v0_1::detail
