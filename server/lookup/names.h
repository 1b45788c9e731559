// Finds resources by the names that people give: `experiments/ID`, a bare ID, or, for calls that
// change nothing, the beginning of an ID or an experiment's name, which means the newest of that
// name. Every name in a request is looked up here on behalf of its caller: resources private to
// others aren't found, nor offered as the nearest name or a candidate.
#ifndef ABLATE_SERVER_LOOKUP_NAMES_H_
#define ABLATE_SERVER_LOOKUP_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace grpc {
class ServerContextBase;
}

namespace ablate::lookup {

// One caller's view of the store.
struct View {
  storage::Store* store = nullptr;
  storage::Viewer viewer;
  // Receives kNewestOf as trailing metadata for each name that several experiments have; may be
  // null.
  grpc::ServerContextBase* call = nullptr;
};

// Returns the id that `name` means, in field `field` of the request. INVALID_ARGUMENT if the name
// has a wrong form; NOT_FOUND, with the nearest name if there is one; INVALID_ARGUMENT with
// candidates if several ids begin with it and it isn't an experiment's name.
absl::StatusOr<std::string> FindExperiment(const View& view, absl::string_view name,
                                           absl::string_view field);
absl::StatusOr<std::string> FindRun(const View& view, absl::string_view name,
                                    absl::string_view field);
absl::StatusOr<std::string> FindAnalysis(const View& view, absl::string_view name,
                                         absl::string_view field);
// Returns the id for calls that change or remove; accepts the whole ID only. NOT_FOUND otherwise,
// with the ids that begin with it or are near.
absl::StatusOr<std::string> FindWholeExperiment(const View& view, absl::string_view name,
                                                absl::string_view field);
absl::StatusOr<std::string> FindWholeDataset(const View& view, absl::string_view name,
                                             absl::string_view field);
absl::StatusOr<std::string> FindWholeModel(const View& view, absl::string_view name,
                                           absl::string_view field);
absl::StatusOr<std::string> FindWholeAnalysis(const View& view, absl::string_view name,
                                              absl::string_view field);
// Returns the run of an experiment's cell; `experiment` is an id that FindExperiment returned.
absl::StatusOr<std::string> FindCellRun(storage::Store* store, const std::string& experiment,
                                        absl::string_view cell, absl::string_view field);
// Finds a data set by id or display name, as storage::Store::FindDataset.
absl::StatusOr<storage::DatasetRecord> FindDataset(const View& view, absl::string_view name,
                                                   absl::string_view field);

// Finds a model as storage::Store::FindModel.
absl::StatusOr<storage::ModelRecord> FindModel(const View& view, absl::string_view name,
                                               absl::string_view field);

// Returns an error unless `name` can be the name of a file or a model that a user chose: 1 to
// kMaxDisplayNameBytes letters, digits, '.', '_' or '-', starting with a letter or digit. `kind`
// is "file" or "model".
absl::Status CheckChosenName(absl::string_view name, absl::string_view kind,
                             absl::string_view field);

// Parts of `runs/{run}/checkpoints/{step}`.
struct CheckpointName {
  std::string run;  // as given: an id or its beginning
  uint32_t step = 0;
};
absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view name, absl::string_view field);

// Finds a checkpoint, the last one if there is no step. `run` is an id that FindRun returned.
// NOT_FOUND lists the existing steps; FAILED_PRECONDITION if the last one is asked for and the run
// has none.
absl::StatusOr<storage::ArtifactRecord> FindCheckpoint(storage::Store* store,
                                                       const std::string& run,
                                                       std::optional<uint32_t> step);

std::string ExperimentName(absl::string_view id);
std::string RunName(absl::string_view id);
std::string AnalysisName(absl::string_view id);
std::string DatasetName(absl::string_view id);
std::string ModelName(absl::string_view id);
std::string CheckpointNameOf(absl::string_view run, uint32_t step);

}  // namespace ablate::lookup

#endif  // ABLATE_SERVER_LOOKUP_NAMES_H_
