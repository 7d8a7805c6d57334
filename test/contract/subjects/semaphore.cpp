#include "contract/subjects/semaphore.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(semaphore_subjects)
