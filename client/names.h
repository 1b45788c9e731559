// Names of resources as people type them.
#ifndef ABLATE_CLIENT_NAMES_H_
#define ABLATE_CLIENT_NAMES_H_

#include <optional>
#include <string>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/run.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"

namespace ablate::client {

// `experiments/ID` of `experiments/ID`, an id or the beginning of one, which the server completes.
std::string ExperimentName(absl::string_view text);

// What stands behind the first slash: the id.
std::string Id(absl::string_view name);

struct CellName {
  std::string experiment;  // experiments/ID
  std::string cell;
};

// Of `EXP/CELL` or `experiments/EXP/CELL`; nothing if `text` is neither, such as `runs/ID`.
std::optional<CellName> ParseCellName(absl::string_view text);

// The experiment that `text` means. NOT_FOUND says how to see which there are, INVALID_ARGUMENT of
// a cell or a run what takes one.
absl::StatusOr<v1::Experiment> FindExperiment(Connection* connection, absl::string_view text);

enum class Shortened { kAllowed, kRefused };

// Returns `experiments/ID` for a call that changes or removes, which takes nothing shorter.
// `experiments/ID` is taken as it is, so that a script that runs twice can't reach another
// experiment; everything else is looked up. INVALID_ARGUMENT for a name that several experiments
// have, and with kRefused for the beginning of a name or ID.
absl::StatusOr<std::string> ResolveExperimentName(Connection* connection, absl::string_view text,
                                                  Shortened shortened);
// `datasets/ID` in the same way; `text` may be a display name.
absl::StatusOr<std::string> ResolveDatasetName(Connection* connection, absl::string_view text);

// Every row of an experiment, over all pages.
absl::StatusOr<v1::ListRunsResponse> ListAllRuns(Connection* connection,
                                                 const std::string& experiment);

// The row of a cell. NOT_FOUND with the nearest name.
absl::StatusOr<v1::RunRow> FindCell(Connection* connection, const CellName& name);

// The run that `EXP/CELL`, `runs/ID` or a run's id means.
absl::StatusOr<std::string> FindRun(Connection* connection, absl::string_view text);

// An error about the run that `text` means, with a word on how cells are named if it is NOT_FOUND
// and was, or may have been, meant as an experiment.
absl::Status ExplainRunError(Connection* connection, const absl::Status& status,
                             absl::string_view text);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_NAMES_H_
