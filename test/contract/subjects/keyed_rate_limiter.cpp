// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/keyed_rate_limiter.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(keyed_rate_limiter_subjects)
