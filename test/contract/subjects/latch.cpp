// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/latch.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(latch_subjects)
