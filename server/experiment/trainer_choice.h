// Chooses the trainer for cells that leave it open: one for all of them, because two trainers round
// their sums differently, and a comparison of settings must not compare trainers, too. Also checks
// cells that ask for a trainer that doesn't support them.
#ifndef ABLATE_SERVER_EXPERIMENT_TRAINER_CHOICE_H_
#define ABLATE_SERVER_EXPERIMENT_TRAINER_CHOICE_H_

#include <string>
#include <utility>
#include <vector>

#include "server/config/problems.h"
#include "server/experiment/writes.h"

namespace ablate::spec {

using Labels = std::vector<std::pair<std::string, std::string>>;  // axis name, label

// A combination of settings whose trainer may be native.
struct NativeCandidate {
  const Labels* labels = nullptr;  // of the same axes in each combination
  std::string why_not_native;      // from engine::WhyNotNative
};

// Returns why the native trainer doesn't train all of them; empty if it does. Each reason appears
// once, with the fewest labels of its first combination that no combination without the reason
// shares: "the native trainer has no such norm (norm=batch)".
std::string WhyNotAllNative(const std::vector<NativeCandidate>& combinations);

// Adds a problem at `asked`, which sets these combinations to native, unless native trains all of
// them: the reason, with labels as above, and what to do.
void CheckNative(const Source& asked, const std::vector<NativeCandidate>& combinations,
                 Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_TRAINER_CHOICE_H_
