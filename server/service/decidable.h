// Predicts before training what an experiment's comparison can't decide. Pure.
#ifndef ABLATE_SERVER_SERVICE_DECIDABLE_H_
#define ABLATE_SERVER_SERVICE_DECIDABLE_H_

#include <string>

#include "server/spec/resolve.h"

namespace ablate::service {

// Returns a note if the grid has too few seeds, however its runs end: "6 seeds can't establish a
// difference: the permutation test, Holm-adjusted for 3 comparisons, has p of at least 0.0938; 7
// seeds are needed". For one seed and a number that is compared by sequence, says so instead.
// "" if they suffice, or if nothing is compared. The resolution has no problems.
std::string UndecidableNote(const spec::Resolution& resolution);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_DECIDABLE_H_
