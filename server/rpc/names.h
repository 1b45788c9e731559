// Finds resources by the names that people give: `experiments/ID`, a bare ID, or, if nothing is
// changed, the beginning of an ID or the name of an experiment, which means the newest of that
// name. Every name in a request is looked up here, for its caller: what is private to others is not
// found, nor offered as the nearest name or a candidate.
#ifndef ABLATE_SERVER_RPC_NAMES_H_
#define ABLATE_SERVER_RPC_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace grpc {
class ServerContextBase;
}

namespace ablate::rpc {

// What one caller sees of the store.
struct View {
  storage::Store* store = nullptr;
  storage::Viewer viewer;
  // Gets kNewestOf as trailing metadata for each name that several experiments have; null: nothing.
  grpc::ServerContextBase* call = nullptr;
};

// The id that `name` means, in field `field` of the request. INVALID_ARGUMENT if it can't be such a
// name; NOT_FOUND, with the nearest one if there is one; INVALID_ARGUMENT with candidates if it
// begins several and is the name of none.
absl::StatusOr<std::string> FindExperiment(const View& view, absl::string_view name,
                                           absl::string_view field);
absl::StatusOr<std::string> FindRun(const View& view, absl::string_view name,
                                    absl::string_view field);
absl::StatusOr<std::string> FindAnalysis(const View& view, absl::string_view name,
                                         absl::string_view field);
// For calls that change or remove: only the whole ID will do. NOT_FOUND otherwise, which also says
// what it begins or was near to.
absl::StatusOr<std::string> FindWholeExperiment(const View& view, absl::string_view name,
                                                absl::string_view field);
absl::StatusOr<std::string> FindWholeDataset(const View& view, absl::string_view name,
                                             absl::string_view field);
absl::StatusOr<std::string> FindWholeAnalysis(const View& view, absl::string_view name,
                                              absl::string_view field);
// The run of an experiment's cell; `experiment` is an id that FindExperiment gave.
absl::StatusOr<std::string> FindCellRun(storage::Store* store, const std::string& experiment,
                                        absl::string_view cell, absl::string_view field);
// By id or by a display name, as storage::Store::FindDataset.
absl::StatusOr<storage::DatasetRecord> FindDataset(const View& view, absl::string_view name,
                                                   absl::string_view field);

// `runs/{run}/checkpoints/{step}`.
struct CheckpointName {
  std::string run;  // as given: an id or the beginning of one
  uint32_t step = 0;
};
absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view name, absl::string_view field);

// `run` is an id that FindRun gave; without a step its last checkpoint. NOT_FOUND lists the steps
// that there are; FAILED_PRECONDITION if the last one is asked for and there is none.
absl::StatusOr<storage::ArtifactRecord> FindCheckpoint(storage::Store* store,
                                                       const std::string& run,
                                                       std::optional<uint32_t> step);

std::string ExperimentName(absl::string_view id);
std::string RunName(absl::string_view id);
std::string AnalysisName(absl::string_view id);
std::string DatasetName(absl::string_view id);
std::string CheckpointNameOf(absl::string_view run, uint32_t step);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_NAMES_H_
