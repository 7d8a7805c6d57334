#include "contract/subjects/mutex.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(mutex_subjects)
