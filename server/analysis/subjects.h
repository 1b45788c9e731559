// Finds the models that analyses are about: stored runs at their checkpoints.
#ifndef ABLATE_SERVER_ANALYSIS_SUBJECTS_H_
#define ABLATE_SERVER_ANALYSIS_SUBJECTS_H_

#include <string>

#include "ablate/v1/spec.pb.h"
#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/task.h"
#include "server/schedule/analyses.h"
#include "storage/records.h"
#include "storage/store.h"

namespace ablate::analysis {

// Returns the spec of a stored run. DATA_LOSS if it can't be read.
absl::StatusOr<v1::RunSpec> SpecOf(const storage::RunRecord& run);

// Returns FAILED_PRECONDITION if the run is a program, which has no model to analyze or to sample.
absl::Status CheckTrainsModel(absl::string_view run, const v1::RunSpec& spec);

// Returns the properties of the model that a stored run's task determines. Reads the data set, blob
// `dataset_blob`, only for facts that aren't stored. NOT_FOUND if that blob is gone. Blocks on the
// store.
absl::StatusOr<engine::TaskShape> ShapeOfTask(storage::Store* store, const v1::TaskSpec& task,
                                              const std::string& dataset_blob);

// Describes a model to be analyzed, as known before anything of it is read.
struct AnalyzedModel {
  engine::RunConfig config;  // without its data
  std::string data_blob;     // the training data's blob; empty if there is none
};

// Describes a stored run's model. Errors as GetRun's and CheckTrainsModel's; DATA_LOSS if the spec
// can't be read. Blocks on the store.
absl::StatusOr<AnalyzedModel> ModelOfRun(storage::Store* store, const std::string& run);

// Builds a worker's request for a stored analysis, complete except for its callbacks, and pins what
// the worker reads. NOT_FOUND if a subject is gone; DATA_LOSS. Blocks on the store.
absl::StatusOr<schedule::AnalysisRequest> PrepareComputation(
    storage::Store* store, const storage::AnalysisRecord& analysis);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_SUBJECTS_H_
