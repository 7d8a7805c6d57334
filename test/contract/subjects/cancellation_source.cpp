// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/cancellation_source.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(cancellation_source_subjects)
