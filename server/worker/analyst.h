// Executes an analysis or sampling request, from reading its inputs to its last message.
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

// Returns the number of lanes (threads) of an analysis worker on a machine with `cores` cores: one
// for samples, one each for a short and a long computation, and from eight cores on one more per
// four cores. If every core trains, the analyses take about a fifth of such a machine's time
// (schedule/analyses.h).
inline int AnalysisLanes(int cores) { return 2 + std::max(1, cores / 4); }

// The same on a GPU: few, because each computation needs memory of the device, and enough that a
// short one needn't wait until a long one has saved its state.
inline constexpr int kCudaAnalysisLanes = 3;

// engine::GenerateSamples, or a test's function.
using SampleGenerator = std::function<absl::StatusOr<engine::SampleCounts>(
    const engine::RunConfig&, absl::string_view checkpoint, const engine::SampleOptions&,
    const std::atomic<bool>& stop, const std::function<void(std::vector<engine::Sample>)>&)>;

// The functions and settings that analyses use.
struct AnalysisTools {
  SampleGenerator generate;
  AnalysisMaker make;
  ComputationPace pace;
  // Gives a GPU's unused memory back after each request, because runs train there, too; may be
  // null.
  std::function<void()> release = nullptr;
};

// Executes requests. Thread-safe.
class Analyst {
 public:
  // `send` must not block.
  Analyst(AnalysisTools tools, BlobChannel* blobs, std::function<void(v1::FromWorker)> send);

  // Blocks until the result, or the reason why there is none, is sent. A failed analysis also
  // returns OK; an error means that the device is lost, and is returned for a withdrawn analysis,
  // too. The calling thread must be a prepared lane.
  absl::Status Execute(const v1::Analyze& analyze, RunControl& control);
  // Sends the end of an analysis that was withdrawn before it began.
  void ReportWithdrawn(const std::string& id);

 private:
  // Returns the result, or nullopt if it yielded.
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
