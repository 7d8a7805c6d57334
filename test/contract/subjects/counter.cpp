// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/counter.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(counter_subjects)
