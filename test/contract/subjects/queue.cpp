// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/queue.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(queue_subjects)
