// Samples from a run's checkpoint, made by the worker for analyses.
#ifndef ABLATE_SERVER_ANALYSIS_SAMPLES_H_
#define ABLATE_SERVER_ANALYSIS_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/samples.h"
#include "server/rpc/cancelled.h"
#include "server/schedule/analyses.h"
#include "storage/store.h"

namespace ablate::analysis {

// Which samples are wanted (spec::ToSampleOptions reads an experiment's `analyses`). `run` is an
// id; without a step from its last checkpoint.
struct SamplesQuery {
  std::string run;
  std::optional<uint32_t> step;
  engine::SampleOptions options;
};

struct SampleSet {
  uint32_t step = 0;  // of the checkpoint
  std::vector<engine::Sample> samples;
  engine::SampleCounts counts;
  bool are_documents = false;  // else nothing was looked for in the training data
};

// INVALID_ARGUMENT with every option that is out of range, but for the prompt, which depends on the
// run.
absl::Status CheckSamplesOptions(const engine::SampleOptions& options);

// Waits until the worker has answered or nobody wants it (CANCELLED): for a thread of the pool,
// such as a report's, never for a reaction. Errors as GenerateSamples and schedule::Analyses have
// them; NOT_FOUND or FAILED_PRECONDITION if the run is unknown, has no such checkpoint, or a task
// without text.
absl::StatusOr<SampleSet> MakeSamples(storage::Store* store, schedule::Analyses* analyses,
                                      const SamplesQuery& query, const rpc::Cancelled& cancelled);

// The same for a caller that hears of each part: a request that lacks only who is told. Blocks on
// the store.
struct PreparedSamples {
  uint32_t step = 0;
  bool are_documents = false;  // as SampleSet's
  schedule::AnalysisRequest request;
};
absl::StatusOr<PreparedSamples> PrepareSamples(storage::Store* store, const SamplesQuery& query);

// What is said about a worker's error: of a bad prompt which field it is.
absl::Status ExplainSamplesError(const absl::Status& status);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_SAMPLES_H_
