// SPDX-License-Identifier: BSL-1.0
#include "contract/enroll.hpp"
#include "contract/subjects/queue_ends.hpp"

ENROLL_SUBJECTS(priority_queue_end_subjects)
