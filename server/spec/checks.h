// Checks of an experiment: first apart from its runs (check_experiment.cc), then of each
// combination (check_run.cc, check_effects.cc). Fields by themselves are in fields.h, axes in
// axes.h, the grid's size in grid.h.
#ifndef ABLATE_SERVER_SPEC_CHECKS_H_
#define ABLATE_SERVER_SPEC_CHECKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/message.h"
#include "proto/reflect/read.h"
#include "server/spec/bad_paths.h"
#include "server/spec/datasets.h"
#include "server/spec/problems.h"
#include "server/spec/writes.h"

namespace ablate::spec {

// Adds what is out of the bounds that the fields of `message`, which is at `path`, declare. Returns
// false if anything is.
bool CheckBounds(const google::protobuf::Message& message, const std::string& path,
                 Problems* problems);

// Adds that an enum's number, at `path`, names no value.
void CheckEnum(const reflect::EnumNumber& value, const std::string& path, Problems* problems);

// What a client that is not ours could send: fields and enum numbers that this server does not
// know, text that is not UTF-8, values that are empty or not finite. Paths are below the
// experiment.
void CheckWellFormed(const v1::ExperimentSpec& spec, Problems* problems);

// Name, question, report and limits.
void CheckExperiment(const v1::ExperimentSpec& spec, Problems* problems);

// One combination.
struct RunToCheck {
  const v1::BaseSpec& merged;  // what was written
  const v1::BaseSpec& filled;  // with defaults
  const Sources& sources;
  const BadPaths& bad;  // paths that have problems of their own
};

// Fields that must fit each other, the data set, the device. Each problem is reported where one of
// its fields was written most particularly: in a setting before an override before the base. Fields
// in `bad` are not compared with others. Returns the paths that have problems here.
BadPaths CheckRun(const RunToCheck& run, const Surroundings& surroundings, Datasets* datasets,
                  Problems* problems);

// Finds fields that are set and have no effect, by the conditions that spec.proto declares
// (Conditions of fields.h).
class EffectChecker {
 public:
  // Reports fields that an axis writes without effect in this combination, and returns their paths.
  BadPaths Check(const RunToCheck& run, Problems* problems);

  // After all combinations: reports fields of the base and of overrides that have an effect in none
  // of them, unless an override switched off what the base sets.
  void ReportIdle(Problems* problems) const;

 private:
  std::set<std::string> used_;           // sources of fields that have an effect somewhere
  std::map<std::string, Problem> idle_;  // of fields without effect somewhere, by source
};

// What training a run takes at least, and what there is.
struct MemoryNeed {
  uint64_t parameters = 0;
  double bytes = 0;
  uint64_t available = 0;
};

// For a run that takes more than there is: reported like CheckRun's.
void ReportMemory(const RunToCheck& run, const MemoryNeed& need, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_CHECKS_H_
