// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/event.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(event_subjects)
