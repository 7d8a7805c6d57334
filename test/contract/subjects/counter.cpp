#include "contract/subjects/counter.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(counter_subjects)
