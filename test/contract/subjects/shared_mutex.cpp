#include "contract/subjects/shared_mutex.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(shared_mutex_subjects)
