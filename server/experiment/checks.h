// Checks an experiment: first independently of its runs (check_experiment.cc), then each
// combination (check_run.cc, check_effects.cc). fields.h has the checks of single fields, axes.h
// those of axes, grid.h that of the grid's size.
#ifndef ABLATE_SERVER_EXPERIMENT_CHECKS_H_
#define ABLATE_SERVER_EXPERIMENT_CHECKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/message.h"
#include "proto/reflect/read.h"
#include "server/config/bad_paths.h"
#include "server/config/problems.h"
#include "server/experiment/datasets.h"
#include "server/experiment/writes.h"

namespace ablate::spec {

// Adds a problem for each field of `message`, at `path`, that is out of its declared bounds.
// Returns false if there is one.
bool CheckBounds(const google::protobuf::Message& message, const std::string& path,
                 Problems* problems);

// Adds a problem at `path` for an enum number without a value.
void CheckEnum(const reflect::EnumNumber& value, const std::string& path, Problems* problems);

// Checks for content that only other clients than ours send: fields and enum numbers unknown to
// this server, text that isn't UTF-8, values that are empty or not finite. Paths are below the
// experiment.
void CheckWellFormed(const v1::ExperimentSpec& spec, Problems* problems);

// Checks name, question, report and limits.
void CheckExperiment(const v1::ExperimentSpec& spec, Problems* problems);

// One combination to check.
struct RunToCheck {
  const v1::BaseSpec& merged;  // as written
  const v1::BaseSpec& filled;  // with defaults
  const Sources& sources;
  const BadPaths& bad;                                  // paths with problems of their own
  const absl::StatusOr<ModelFacts>* initial = nullptr;  // of model_from, if it is set
};

// Checks that fields fit each other, the data set and the device. Reports each problem at the most
// specific place where one of its fields was written: a setting, then an override, then the base.
// Doesn't compare fields in `bad` with others. Returns the paths that have problems here.
BadPaths CheckRun(const RunToCheck& run, const Surroundings& surroundings, Datasets* datasets,
                  Problems* problems);

// Finds fields that are set but have no effect, by the conditions that spec.proto declares
// (Conditions of fields.h).
class EffectChecker {
 public:
  // Reports fields that an axis writes without effect in this combination, and returns their paths.
  BadPaths Check(const RunToCheck& run, Problems* problems);

  // Call it after all combinations: reports fields of the base and of overrides that have an effect
  // in none of them, unless an override switched off what the base sets.
  void ReportIdle(Problems* problems) const;

 private:
  std::set<std::string> used_;           // sources of fields that have an effect somewhere
  std::map<std::string, Problem> idle_;  // fields without effect somewhere, by source
};

// The least memory that training a run takes, and the available memory.
struct MemoryNeed {
  uint64_t parameters = 0;
  double bytes = 0;
  uint64_t available = 0;
};

// Reports a run that needs more memory than there is, like CheckRun's problems.
void ReportMemory(const RunToCheck& run, const MemoryNeed& need, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_CHECKS_H_
