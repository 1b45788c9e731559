// Resolves names of resources as people type them.
#ifndef ABLATE_CLIENT_NAMES_H_
#define ABLATE_CLIENT_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/run.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"

namespace ablate::client {

// Returns `experiments/ID` for `experiments/ID`, an ID or a prefix of one, which the server
// completes.
std::string ExperimentName(absl::string_view text);

// Returns the part after the first slash: the ID.
std::string Id(absl::string_view name);

// Returns true if the experiment still has the name that its ID begins with.
bool IsNamedAfter(const v1::Experiment& experiment);

struct CellName {
  std::string experiment;  // experiments/ID
  std::string cell;        // or a setting, or @best
};

// Parses `EXP/PART` or `experiments/EXP/PART`; returns nothing for other texts, such as `runs/ID`.
std::optional<CellName> ParseCellName(absl::string_view text);

// Returns the experiment that `text` means. NOT_FOUND names the command that lists experiments.
// INVALID_ARGUMENT for a cell or a run names the commands that take one.
absl::StatusOr<v1::Experiment> FindExperiment(Connection* connection, absl::string_view text);

enum class Shortened { kAllowed, kRefused };

// Returns `experiments/ID` for a call that changes or removes, which needs the whole name.
// `experiments/ID` is used without a lookup, so that a script that runs twice can't reach another
// experiment; everything else is looked up. INVALID_ARGUMENT for a name that several experiments
// have, and with kRefused for a prefix of a name or ID.
absl::StatusOr<std::string> ResolveExperimentName(Connection* connection, absl::string_view text,
                                                  Shortened shortened);
// Returns `datasets/ID` in the same way; `text` may be a display name.
absl::StatusOr<std::string> ResolveDatasetName(Connection* connection, absl::string_view text);

// Returns the ID of the experiment that extends the experiment called `name`; empty if none does
// or the server doesn't answer.
std::string ExtensionOf(Connection* connection, absl::string_view name);

// INVALID_ARGUMENT if a tag of --tag begins with '-': it is another option, after a forgotten TAG.
absl::Status CheckNewTags(const std::vector<std::string>& tags);

// Returns `models/NAME` for it or a name, which the server looks up.
std::string ModelName(absl::string_view text);

// Returns every row of an experiment, over all pages.
absl::StatusOr<v1::ListRunsResponse> ListAllRuns(Connection* connection,
                                                 const std::string& experiment);

// Returns the rows of EXP/PART, at least one: one of a cell or of `@best`, several of a setting.
absl::StatusOr<v1::ListRunsResponse> ListPart(Connection* connection, const CellName& name);

// Returns the row of the only cell that EXP/PART means. INVALID_ARGUMENT lists those of a setting
// with several, and the most similar name of one that isn't there.
absl::StatusOr<v1::RunRow> FindCell(Connection* connection, const CellName& name);

// Returns the run that `EXP/CELL` (or a setting with one cell, or @best), `runs/ID` or the ID of a
// run means.
absl::StatusOr<std::string> FindRun(Connection* connection, absl::string_view text);

// Returns an error about the run that `text` means. If it is NOT_FOUND and the text may be the name
// of an experiment, the message shows how to name a cell.
absl::Status ExplainRunError(Connection* connection, const absl::Status& status,
                             absl::string_view text);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_NAMES_H_
