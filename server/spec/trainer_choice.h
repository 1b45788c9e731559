// Which trainer the cells get that leave it to the server: one for all of them, for two trainers
// round their sums differently, and a comparison of settings must not be one of trainers, too.
#ifndef ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_
#define ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_

#include <string>
#include <utility>
#include <vector>

namespace ablate::spec {

using Labels = std::vector<std::pair<std::string, std::string>>;  // axis name, label

// A combination of settings that asks for `auto`.
struct OpenCombination {
  const Labels* labels = nullptr;  // of the same axes in each combination
  std::string why_not_native;      // engine::WhyNotNative
};

// Why the native trainer does not train all of them; empty if it does. Each reason once, with as
// few labels of its first combination as leave no other without that reason: "the native trainer
// has no such norm (norm=batch)".
std::string WhyNotAllNative(const std::vector<OpenCombination>& combinations);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_TRAINER_CHOICE_H_
