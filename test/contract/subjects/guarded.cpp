// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/guarded.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(guarded_subjects)
