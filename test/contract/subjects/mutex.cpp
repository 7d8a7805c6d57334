// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/mutex.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(mutex_subjects)
