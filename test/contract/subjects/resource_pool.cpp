// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/resource_pool.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(resource_pool_subjects)
