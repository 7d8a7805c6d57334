// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/barrier.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(barrier_subjects)
