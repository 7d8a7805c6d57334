#include "contract/subjects/latch.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(latch_subjects)
