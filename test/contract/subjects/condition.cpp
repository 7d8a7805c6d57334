// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/condition.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(condition_subjects)
