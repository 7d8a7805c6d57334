#include "contract/subjects/oneshot.hpp"

#include "contract/enroll.hpp"

ENROLL_SUBJECTS(oneshot_subjects)
