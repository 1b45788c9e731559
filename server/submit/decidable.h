// Predicts before training what an experiment's comparison can't decide, and which differences it
// can.
#ifndef ABLATE_SERVER_SUBMIT_DECIDABLE_H_
#define ABLATE_SERVER_SUBMIT_DECIDABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"

namespace ablate::submit {

// Returns a note if the grid has too few seeds, however its runs end: "6 seeds can't establish a
// difference: the permutation test, Holm-adjusted for 3 comparisons, has p of at least 0.0938; 7
// seeds are needed". For one seed and a number that is compared by sequence, says so instead.
// "" if they suffice, or if nothing is compared. The resolution has no problems. Pure.
std::string UndecidableNote(const spec::Resolution& resolution);

// Returns a note with the least difference of the primary metric that the comparison establishes
// with a power of 80 % (report::LeastDetectableEffect), from the spread of paired differences in
// the newest visible experiment that has ended, with the same task, model and primary metric.
// Without one, in standard deviations. "" if nothing is compared, or the grid has too few seeds.
// The resolution has no problems. Blocks on the store.
absl::StatusOr<std::string> DetectableNote(const lookup::View& view,
                                           const spec::Resolution& resolution);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_DECIDABLE_H_
