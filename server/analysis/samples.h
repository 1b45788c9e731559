// Samples text from a checkpoint by the worker for analyses.
#ifndef ABLATE_SERVER_ANALYSIS_SAMPLES_H_
#define ABLATE_SERVER_ANALYSIS_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/analysis/sampled_models.h"
#include "server/engine/samples.h"
#include "server/lookup/cancelled.h"
#include "server/schedule/analyses.h"
#include "storage/store.h"

namespace ablate::analysis {

// Describes the samples wanted (spec::ToSampleOptions reads an experiment's `analyses`). `run` is
// an id; without a step, its last checkpoint is used.
struct SamplesQuery {
  std::string run;
  std::optional<uint32_t> step;
  engine::SampleOptions options;
};

struct SampleSet {
  uint32_t step = 0;  // the checkpoint's
  std::vector<engine::Sample> samples;
  engine::SampleCounts counts;
  bool are_documents = false;  // if false, no search for copies in the training data
};

// Returns INVALID_ARGUMENT listing every option that is out of range. The prompt isn't checked,
// because it depends on the run.
absl::Status CheckSamplesOptions(const engine::SampleOptions& options);

// Makes samples; waits until the worker has answered or nobody wants them (CANCELLED). Call it from
// a thread of the pool, such as a report's, never from a gRPC reaction. Errors as GenerateSamples's
// and schedule::Analyses's; NOT_FOUND or FAILED_PRECONDITION if the run is unknown, has no such
// checkpoint, or its task has no text.
absl::StatusOr<SampleSet> MakeSamples(storage::Store* store, schedule::Analyses* analyses,
                                      const SamplesQuery& query,
                                      const lookup::Cancelled& cancelled);

// Builds a worker's request for samples, complete except for its callbacks, and pins what the
// worker reads, for a caller that handles each part. Blocks on the store.
absl::StatusOr<schedule::AnalysisRequest> PrepareSamples(storage::Store* store,
                                                         const SampledModel& model,
                                                         const engine::SampleOptions& options);

// Turns a worker's error into the caller's: an error about the prompt names its field.
absl::Status ExplainSamplesError(const absl::Status& status);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_SAMPLES_H_
