// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/task_group.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(task_group_subjects)
