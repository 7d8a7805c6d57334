#include "contract/subjects/priority_queue.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(priority_queue_subjects)
