// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/auto_reset_event.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(auto_reset_event_subjects)
