// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/bulkhead.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(bulkhead_subjects)
