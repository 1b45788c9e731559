// Says what completes the value of each option and argument, by its metavar.
#ifndef ABLATE_CLIENT_COMPLETION_VALUES_H_
#define ABLATE_CLIENT_COMPLETION_VALUES_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace ablate::client {

enum class Values {
  kUnknown,  // a number, a new name, a text: nothing can be offered
  kFiles,
  kFolders,
  kListed,  // the words that the help lists, as in "Format: text, csv or latex [text]"
  kCommands,
  kAnalysisKinds,
  kServers,
  kUsers,
  kDatasets,
  kModels,
  kExperiments,
  // From here on, an experiment may be followed by a slash and a part of it, a cell or a setting.
  kCells,
  kCellsOrModels,
  kExperimentsOrCells,
  kExperimentsOrParts,
};

// Returns the values of a metavar, such as EXP/CELL, of a command, such as "model show". A metavar
// that isn't in the table has none: a test finds it.
std::optional<Values> ValuesOf(absl::string_view command, absl::string_view metavar);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMPLETION_VALUES_H_
