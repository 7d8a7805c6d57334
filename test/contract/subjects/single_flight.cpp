// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/single_flight.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(single_flight_subjects)
