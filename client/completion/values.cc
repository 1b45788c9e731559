#include "client/completion/values.h"

namespace ablate::client {
namespace {

struct MetavarRow {
  absl::string_view metavar;
  Values values;
  absl::string_view command = "";  // the only one that the row is for; empty: every other command
};

// NAME and KIND mean something else in each command.
constexpr MetavarRow kMetavars[] = {
    {"FILE", Values::kFiles},
    {"OUT", Values::kFiles},
    {"PATH", Values::kFiles},
    {"FOLDER", Values::kFolders},
    {"FORMAT", Values::kListed},
    {"MODE", Values::kListed},
    {"ROLE", Values::kListed},
    {"SHELL", Values::kListed},
    {"ALLOWED", Values::kListed},
    {"DEVICE", Values::kListed},
    {"DIRECTION", Values::kListed},
    {"END", Values::kListed},
    {"PRIORITY", Values::kListed},
    {"KIND", Values::kListed},
    {"KIND", Values::kAnalysisKinds, "analyze"},
    {"COMMAND", Values::kCommands},
    {"EXP", Values::kExperiments},
    {"EXP", Values::kExperimentsOrParts, "analyses"},
    {"EXP", Values::kExperimentsOrParts, "analyze"},
    {"EXP", Values::kExperimentsOrParts, "metrics"},
    {"EXP|FILTER", Values::kExperimentsOrParts},
    {"EXP[/CELL]", Values::kExperimentsOrCells},
    {"EXP[/PART]", Values::kExperimentsOrSettings},
    {"MORE", Values::kExperimentsOrSettings, "compare"},
    {"A", Values::kExperimentsOrParts, "diff"},
    {"B", Values::kExperimentsOrParts, "diff"},
    {"EXP/CELL", Values::kCells},
    {"EXP/CELL|models/NAME", Values::kCellsOrModels},
    {"MODEL", Values::kCellsOrModels},
    {"DATASET", Values::kDatasets},
    {"TOKENIZER", Values::kDatasets},
    {"NAME", Values::kDatasets, "data get"},
    {"NAME", Values::kDatasets, "data rm"},
    {"NAME", Values::kDatasets, "generate"},
    {"NAME", Values::kModels, "model show"},
    {"NAME", Values::kModels, "model rm"},
    {"NAME", Values::kServers, "ablate"},  // of --server
    {"NAME", Values::kServers, "logout"},
};

}  // namespace

Values ValuesOf(absl::string_view command, absl::string_view metavar) {
  Values values = Values::kNone;
  for (const MetavarRow& row : kMetavars) {
    if (row.metavar != metavar) continue;
    if (row.command == command) return row.values;
    if (row.command.empty()) values = row.values;
  }
  return values;
}

}  // namespace ablate::client
