// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/shared_mutex.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(shared_mutex_subjects)
