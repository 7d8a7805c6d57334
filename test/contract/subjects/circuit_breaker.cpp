#include "contract/subjects/circuit_breaker.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(circuit_breaker_subjects)
