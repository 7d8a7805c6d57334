// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/keyed_mutex.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(keyed_mutex_subjects)
