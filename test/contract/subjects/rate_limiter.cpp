// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/rate_limiter.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(rate_limiter_subjects)
