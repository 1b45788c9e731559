// The models that analyses are about: stored runs at their checkpoints.
#ifndef ABLATE_SERVER_ANALYSIS_SUBJECTS_H_
#define ABLATE_SERVER_ANALYSIS_SUBJECTS_H_

#include <string>

#include "ablate/v1/spec.pb.h"
#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/task.h"
#include "server/schedule/analyses.h"
#include "storage/records.h"
#include "storage/store.h"

namespace ablate::analysis {

// What a stored run trains. DATA_LOSS if it can't be read.
absl::StatusOr<v1::RunSpec> SpecOf(const storage::RunRecord& run);

// Returns what a stored run's task fixes of its model; of its data set, whose bytes are
// `dataset_blob`, reads only what is not known. NOT_FOUND if that is gone. Blocks on the store.
absl::StatusOr<engine::TaskShape> ShapeOfTask(storage::Store* store, const v1::TaskSpec& task,
                                              const std::string& dataset_blob);

// A model that is to be analyzed, as it is known before anything of it is read.
struct AnalyzedModel {
  engine::RunConfig config;  // without its data
  std::string data_blob;     // which holds that; empty if it has none
};

// A stored run's. Errors as GetRun's; DATA_LOSS if the spec can't be read. Blocks on the store.
absl::StatusOr<AnalyzedModel> ModelOfRun(storage::Store* store, const std::string& run);

// What a worker makes of a stored analysis: a request that lacks only who is told, and holds what
// its worker reads. NOT_FOUND if a subject is gone; DATA_LOSS. Blocks on the store.
absl::StatusOr<schedule::AnalysisRequest> PrepareComputation(
    storage::Store* store, const storage::AnalysisRecord& analysis);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_SUBJECTS_H_
