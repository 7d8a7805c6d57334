// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/queue_ends.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(priority_queue_end_subjects)
