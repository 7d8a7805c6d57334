#include "contract/subjects/bulkhead.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(bulkhead_subjects)
