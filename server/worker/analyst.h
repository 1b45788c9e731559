// Makes an analysis, from what it reads to its last message.
#ifndef ABLATE_SERVER_WORKER_ANALYST_H_
#define ABLATE_SERVER_WORKER_ANALYST_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/samples.h"
#include "server/worker/blob_channel.h"
#include "server/worker/computation.h"
#include "server/worker/run_control.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {

// Lanes of a worker for analyses, each a thread, on a machine with so many cores: one for samples,
// a short and a long computation each, and from eight cores on one more for every four. While
// every core trains, analyses of such a machine take about a fifth of its time
// (schedule/analyses.h).
inline int AnalysisLanes(int cores) { return 2 + std::max(1, cores / 4); }

// engine::GenerateSamples, or a test's.
using SampleGenerator = std::function<absl::StatusOr<engine::SampleCounts>(
    const engine::RunConfig&, absl::string_view checkpoint, const engine::SampleOptions&,
    const std::atomic<bool>& stop, const std::function<void(std::vector<engine::Sample>)>&)>;

// What analyses are made with.
struct AnalysisTools {
  SampleGenerator generate;
  AnalysisMaker make;
  ComputationPace pace;
};

// Thread-safe.
class Analyst {
 public:
  // `send` must not block.
  Analyst(AnalysisTools tools, BlobChannel* blobs, std::function<void(v1::FromWorker)> send);

  // Blocks until its result, or why there is none, is sent. OK also when it failed: an error says
  // that the device is lost, also to an analysis that was withdrawn. The calling thread is a
  // prepared lane.
  absl::Status Execute(const v1::Analyze& analyze, RunControl& control);
  // Sends the end of an analysis that was withdrawn before it began.
  void ReportWithdrawn(const std::string& id);

 private:
  // The result, or none if it yielded.
  absl::StatusOr<std::optional<v1::AnalysisResult>> Make(const v1::Analyze& analyze,
                                                         RunControl& control);
  absl::StatusOr<v1::SamplesResult> MakeSamples(const v1::Analyze& analyze, RunControl& control);

  const AnalysisTools tools_;
  BlobChannel* const blobs_;
  const std::function<void(v1::FromWorker)> send_;
  DataSets data_sets_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ANALYST_H_
