// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/oneshot.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(oneshot_subjects)
