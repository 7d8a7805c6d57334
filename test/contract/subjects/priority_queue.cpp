// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/priority_queue.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(priority_queue_subjects)
