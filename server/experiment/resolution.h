// Holds the input and the result of resolving a spec: facts about data sets and models; cells,
// notes and problems.
#ifndef ABLATE_SERVER_EXPERIMENT_RESOLUTION_H_
#define ABLATE_SERVER_EXPERIMENT_RESOLUTION_H_

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
#include "base/dataset_file.h"
#include "server/config/bad_paths.h"
#include "server/config/estimate.h"
#include "server/config/problems.h"
#include "server/engine/config.h"
#include "server/engine/task.h"
#include "server/experiment/experiment_analyses.h"

namespace ablate::spec {

// Facts about a data set that resolving a spec needs. Lengths, code points and line ends are 0 and
// empty if unknown.
struct DatasetFacts : engine::DocumentFacts {
  std::string id = {};  // without "datasets/"
  std::string sha256 = {};
  // For tokens, code_points is their number and characters the size of the vocabulary, with the
  // boundary of documents; `documents` is 0 if they are of a whole text. For tagged sentences,
  // code_points is the number of bytes of their texts.
  DatasetKind kind = DatasetKind::kText;
};

// Facts about a model that a run may begin with.
struct ModelFacts {
  std::string name = {};    // as stored specs have it: models/ID or EXPERIMENT/CELL
  std::string sha256 = {};  // of its checkpoint
  uint32_t vocabulary = 0;
  v1::ModelSpec model = {};  // every applicable field is set, and no other
};

// Memory shared by the runs that train at the same time.
struct DeviceMemory {
  uint64_t bytes = 0;
  uint32_t lanes = 1;  // number of such runs
};

// Everything outside a spec that its resolution depends on.
struct Surroundings {
  // Finds a data set by id or display name, with or without "datasets/". NOT_FOUND or
  // FAILED_PRECONDITION with a sentence. `as_text`: code_points and line_ends are needed, too,
  // which may take a while.
  std::function<absl::StatusOr<DatasetFacts>(absl::string_view name, bool as_text)> find_dataset;
  // Returns the data set of the tokens that a tokenizer divides a text into, both by id: the whole
  // text, or each of its documents. May take a while.
  std::function<absl::StatusOr<DatasetFacts>(const std::string& text, const std::string& tokenizer,
                                             bool documents)>
      encode_dataset = nullptr;
  // Finds the model that model_from names. NOT_FOUND, INVALID_ARGUMENT or FAILED_PRECONDITION with
  // a sentence.
  std::function<absl::StatusOr<ModelFacts>(const std::string& name)> find_model = nullptr;
  bool cuda = false;        // a GPU worker is known: `auto` may become cuda, and `cuda` is allowed
  uint32_t most_lanes = 0;  // of a worker on cores; 0: unknown
  // By kind, for the device with the most memory; absent if unknown.
  std::map<std::string, DeviceMemory> memory = {};
  // Environments of the attached workers that take programs, by kind of device and name: what their
  // bits depend on.
  std::map<std::string, std::map<std::string, std::string>> environments = {};
  // By kind of device: why a worker takes no programs.
  std::map<std::string, std::string> no_programs = {};
};

// A cell's run with a trainer or on a device that it did not get.
struct OtherRun {
  std::string trainer;
  std::string device_kind;
  std::string fingerprint;
  std::string growth;
};

struct ResolvedCell {
  std::string name;                                         // such as post-lr0.01-s42
  std::vector<std::pair<std::string, std::string>> labels;  // axis name, label; in axis order
  uint32_t seed = 0;
  v1::RunSpec run;          // every applicable field is set, data sets as datasets/ID
  std::string fingerprint;  // 12 characters of [a-z2-7]
  std::string trajectory;
  // Equal for runs that differ only in their steps, so that a longer one can continue a shorter
  // one; empty if a run of this spec can't be continued.
  std::string growth;
  std::string shape;        // equal for runs that cost the same per step, evaluations included
  std::string device_kind;  // cpu or cuda
  std::string trainer;      // torch or native
  // If its trainer was auto and is torch: why native doesn't train all cells that ask for auto
  // (trainer_choice.h). Otherwise empty.
  std::string why_not_native;
  std::vector<OtherRun> others;  // that auto could have become, if its trainer or device was auto
  std::string dataset_sha256;    // empty if the task has no data set
  std::string data_sha256;       // of a program's data; empty if it has none
  std::string initial_sha256;    // of the checkpoint of model_from; empty if parameters are drawn
  uint64_t parameters = 0;       // 0 for a program
  uint64_t bytes = 0;            // estimate of its permanent storage
  uint64_t resume_bytes = 0;     // estimate of a resume state, which exists while it trains
  double flops_per_step = 0;     // forward and backward, for a guess of its time
  EvaluationCost evaluation;     // cost of each evaluation, for the same
  Speed guessed_speed;           // of its trainer, for the same
};

struct Resolution {
  // As submitted, with overrides applied to base, settings in place of switches, and data sets
  // (except in axes' values, which are labels) as datasets/ID.
  v1::ExperimentSpec spec;
  std::vector<ResolvedCell>
      cells;  // grid order: last axis fastest, then seeds; excluded ones left out
  std::vector<v1::SettingParameters> parameters;
  // Cost of one analysis for each entry of the spec except samples.
  std::vector<EntryCost> analyses;
  // One per setting, like `parameters`, for its first seed; none if the runs are programs.
  std::vector<engine::RunConfig> configs;
  std::vector<BadPaths> bad;  // one per setting, too: paths with problems
  std::vector<std::string> notes;
  std::vector<Problem> problems;
  // True if all cells exist and none has a problem. If false, the existing cells serve only to find
  // further problems; checks skip the settings whose bad paths they would read.
  bool sound = false;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_RESOLUTION_H_
