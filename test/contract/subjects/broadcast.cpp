// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/broadcast.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(broadcast_subjects)
