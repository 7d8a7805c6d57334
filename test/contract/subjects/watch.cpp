// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/watch.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(watch_subjects)
