// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/cache.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(cache_subjects)
