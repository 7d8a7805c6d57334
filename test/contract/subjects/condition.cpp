#include "contract/subjects/condition.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(condition_subjects)
