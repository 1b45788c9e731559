// Runs an analysis computation: reads its blobs, computes its pieces, and returns its result or
// yields.
#ifndef ABLATE_SERVER_WORKER_COMPUTATION_H_
#define ABLATE_SERVER_WORKER_COMPUTATION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/engine/analysis.h"
#include "server/worker/blob_channel.h"
#include "server/worker/run_control.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {

// engine::MakeAnalysis, or a test's function.
using AnalysisMaker =
    std::function<absl::StatusOr<std::unique_ptr<engine::Analysis>>(engine::AnalysisRequest)>;

struct ComputationPace {
  absl::Duration say_every = absl::Milliseconds(200);  // interval of progress messages
  // Interval between saved states. It is longer if saving would take more than a twentieth of the
  // time.
  absl::Duration save_every = absl::Seconds(30);
  // Estimated speed of writing a state and reading it again, in bytes per second. Between two saves
  // it computes for at least twenty times as long as that takes, even if it is asked to yield.
  double moved_per_second = 5e7;
};

// The resources that a computation uses; they must outlive it.
struct ComputationHands {
  const AnalysisMaker& make;
  BlobChannel* blobs;
  DataSets* data_sets;
  const std::function<void(v1::FromWorker)>& send;  // must not block
  ComputationPace pace;
};

// Blocks its thread, which must be a prepared lane. Returns nullopt after a halt, once the state is
// saved and the server has been told. A halted computation first finishes its current piece, and
// more pieces while its state is too large to be saved again so soon; if no piece is left, it
// returns its result. Errors are the engine's, the channel's, and unknown contents of the request;
// after the computation was abandoned they are arbitrary.
absl::StatusOr<std::optional<v1::ComputationResult>> MakeComputation(const std::string& id,
                                                                     const v1::Computation& asked,
                                                                     ComputationHands hands,
                                                                     RunControl& control);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_COMPUTATION_H_
