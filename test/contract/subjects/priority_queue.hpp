// SPDX-License-Identifier: BSL-1.0
// The waiting operations of priority_queue.
#pragma once

#include "contract/subjects/queue.hpp"

#include <turnstile/channel/priority_queue.hpp>

namespace contract {

template <class Threading>
using priorities =
    turnstile::basic_priority_queue<int, int, std::less<int>, asio::any_io_executor, Threading>;

using priority_queue_subjects =
    subjects_of_queues<priorities<thread_safe>, priorities<strand_confined>>;

} // namespace contract
