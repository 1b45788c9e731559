// Says what completes the value of each option and argument, by its metavar.
#ifndef ABLATE_CLIENT_COMPLETION_VALUES_H_
#define ABLATE_CLIENT_COMPLETION_VALUES_H_

#include "absl/strings/string_view.h"

namespace ablate::client {

enum class Values {
  kNone,  // a number, a new name, a text
  kFiles,
  kFolders,
  kListed,  // the words that the help lists, as in "Format: text, csv or latex [text]"
  kCommands,
  kAnalysisKinds,
  kServers,
  kDatasets,
  kModels,
  kExperiments,
  // From here on, an experiment may be followed by a slash and a part of it.
  kCells,                  // a cell or @best, always
  kCellsOrModels,          // the same, or a model
  kExperimentsOrCells,     // a cell or @best
  kExperimentsOrParts,     // a cell, @best, a setting or @chosen
  kExperimentsOrSettings,  // a cell or a setting
};

// Returns the values of a metavar, such as EXP/CELL, of a command, such as "model show".
Values ValuesOf(absl::string_view command, absl::string_view metavar);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMPLETION_VALUES_H_
