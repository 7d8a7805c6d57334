// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/worker_pool.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(worker_pool_subjects)
