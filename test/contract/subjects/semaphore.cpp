// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/semaphore.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(semaphore_subjects)
