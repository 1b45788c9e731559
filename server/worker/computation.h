// Makes a computation: from its blobs, through its pieces, to its result or to where it yields.
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

// engine::MakeAnalysis, or a test's.
using AnalysisMaker =
    std::function<absl::StatusOr<std::unique_ptr<engine::Analysis>>(engine::AnalysisRequest)>;

struct ComputationPace {
  absl::Duration say_every = absl::Milliseconds(200);  // how far it is
  // How often its state is saved, but so that saving takes a twentieth of the time at most.
  absl::Duration save_every = absl::Seconds(30);
  // About how many of a state's bytes are written, and later read again, in a second. Between two
  // saves it computes for twenty times as long as that takes, also if it is asked to yield.
  double moved_per_second = 5e7;
};

// What a computation needs of its worker; outlives it.
struct ComputationHands {
  const AnalysisMaker& make;
  BlobChannel* blobs;
  DataSets* data_sets;
  const std::function<void(v1::FromWorker)>& send;  // must not block
  ComputationPace pace;
};

// Blocks its thread, a prepared lane. Nothing once it was halted, saved and let go of, which is
// said by then: a halted one makes the piece that it is at, and more of them while its state is too
// large to be moved so soon, and ends instead if that was the last.
// Errors are the engine's, the channel's, and what the request holds that this program does not
// know; whatever they are once it was abandoned.
absl::StatusOr<std::optional<v1::ComputationResult>> MakeComputation(const std::string& id,
                                                                     const v1::Computation& asked,
                                                                     ComputationHands hands,
                                                                     RunControl& control);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_COMPUTATION_H_
