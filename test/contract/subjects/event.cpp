#include "contract/subjects/event.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(event_subjects)
