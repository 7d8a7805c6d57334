// SPDX-License-Identifier: BSL-1.0
#include "contract/subjects/circuit_breaker.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(circuit_breaker_subjects)
