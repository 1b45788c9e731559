// Which trainer the cells get that leave it to the server: one for all of them, for two trainers
// round their sums differently, and a comparison of settings must not be one of trainers, too. And
// what is said to those who ask for one that does not train all of theirs.
#ifndef ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_
#define ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_

#include <string>
#include <utility>
#include <vector>

#include "server/spec/problems.h"
#include "server/spec/writes.h"

namespace ablate::spec {

using Labels = std::vector<std::pair<std::string, std::string>>;  // axis name, label

// A combination of settings whose trainer may be native.
struct NativeCandidate {
  const Labels* labels = nullptr;  // of the same axes in each combination
  std::string why_not_native;      // engine::WhyNotNative
};

// Why the native trainer does not train all of them; empty if it does. Each reason once, with as
// few labels of its first combination as leave no other without that reason: "the native trainer
// has no such norm (norm=batch)".
std::string WhyNotAllNative(const std::vector<NativeCandidate>& combinations);

// A problem at `asked`, where these combinations are told to be native, unless native trains all of
// them: why not, with labels as above, and what to do about it.
void CheckNative(const Source& asked, const std::vector<NativeCandidate>& combinations,
                 Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_
