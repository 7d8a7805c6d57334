#include "contract/subjects/queue.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(queue_subjects)
