#include "contract/subjects/barrier.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(barrier_subjects)
