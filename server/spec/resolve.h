// From what a researcher wrote to the runs that will be trained: overrides, axes, seeds, defaults,
// checks, fingerprints.
#ifndef ABLATE_SERVER_SPEC_RESOLVE_H_
#define ABLATE_SERVER_SPEC_RESOLVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "server/engine/task.h"
#include "server/spec/bad_paths.h"
#include "server/spec/estimate.h"
#include "server/spec/experiment_analyses.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// What must be known of a data set to resolve a spec that names it.
// Lengths, code points and line ends are 0 and empty where they are not known.
struct DatasetFacts : engine::DocumentFacts {
  std::string id = {};  // without "datasets/"
  std::string sha256 = {};
};

// What runs that train at the same time share.
struct DeviceMemory {
  uint64_t bytes = 0;
  uint32_t lanes = 1;  // runs that it trains at once
};

// The world that a spec is resolved in.
struct Surroundings {
  // By id or display name, with or without "datasets/". NOT_FOUND or FAILED_PRECONDITION with a
  // sentence. `as_text`: code_points and line_ends are needed, too, which may take a while to know.
  std::function<absl::StatusOr<DatasetFacts>(absl::string_view name, bool as_text)> find_dataset;
  bool cuda = false;  // a GPU worker is known: what `auto` becomes, and whether `cuda` is allowed
  // By kind, that of the device with the most; absent where not known.
  std::map<std::string, DeviceMemory> memory = {};
};

// A cell's run by the trainer that it did not get.
struct OtherRun {
  std::string trainer;
  std::string fingerprint;
  std::string growth;
};

struct ResolvedCell {
  std::string name;                                         // such as post-lr0.01-s42
  std::vector<std::pair<std::string, std::string>> labels;  // axis name, label; in axis order
  uint32_t seed = 0;
  v1::RunSpec run;          // every field that applies is set, data sets as datasets/ID
  std::string fingerprint;  // 12 characters of [a-z2-7]
  std::string trajectory;
  // Of runs that differ in their steps alone, and of which a longer one goes on where a shorter one
  // ended; empty if a run of this spec can't.
  std::string growth;
  std::string shape;        // key of runs that cost the same a step, their evaluations included
  std::string device_kind;  // cpu or cuda
  std::string trainer;      // torch or native
  // Where its trainer was auto and is torch, why native does not train all cells that ask for auto
  // (trainer_choice.h); else empty.
  std::string why_not_native;
  OtherRun by_other;           // where its trainer was auto; else empty
  std::string dataset_sha256;  // empty if the task has no data set
  uint64_t parameters = 0;
  uint64_t bytes = 0;         // estimate of what it will store for good
  uint64_t resume_bytes = 0;  // estimate of a resume state, which it has while it trains
  double flops_per_step = 0;  // forward and backward, for a guess of its time
  EvaluationCost evaluation;  // of each, for the same
  double guessed_speed = 1;   // how many times as fast as eager it is guessed to train
};

struct Resolution {
  v1::ExperimentSpec spec;  // as submitted, with overrides applied to base and data sets (but in
                            // axes' values, which are labels) as datasets/ID
  std::vector<ResolvedCell>
      cells;  // grid order: last axis fastest, then seeds; excluded ones left out
  std::vector<v1::SettingParameters> parameters;
  // What one analysis takes of each entry of the spec's that is none of samples.
  std::vector<EntryCost> analyses;
  std::vector<engine::RunConfig> configs;  // one a setting, as `parameters`, of its first seed
  std::vector<BadPaths> bad;               // likewise: what has problems in it
  std::vector<std::string> notes;
  std::vector<Problem> problems;
  // All cells are there and none has a problem. If false, the cells that there are serve to find
  // further problems alone: a check skips the settings whose bad paths it would read.
  bool sound = false;
};

inline constexpr size_t kMaxOverrides = 100;
Problem TooManyOverrides(size_t count);

// Every problem at once, each with its path: one leaves out the checks that depend on it, and no
// others. Limits on runs are checked before anything is expanded. Pure but for find_dataset, which
// is called once for each distinct name, and as text only where a task reads it so.
Resolution Resolve(v1::ExperimentSpec spec,
                   const std::map<std::string, google::protobuf::Value>& overrides,
                   const Surroundings& surroundings);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_RESOLVE_H_
