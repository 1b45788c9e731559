#include "client/completion/values.h"

namespace ablate::client {
namespace {

struct MetavarRow {
  absl::string_view metavar;
  Values values;
  absl::string_view command = "";  // the only one that the row is for; empty: every other command
};

// NAME and KIND mean something else in each command: every use has a row.
constexpr MetavarRow kMetavars[] = {
    {"FILE", Values::kFiles},
    {"OUT", Values::kFiles},
    {"PATH", Values::kFiles},
    {"FOLDER", Values::kFolders},
    {"FORMAT", Values::kListed},
    {"ROLE", Values::kListed},
    {"SHELL", Values::kListed},
    {"KIND", Values::kListed, "artifact get"},
    {"KIND", Values::kListed, "figure"},
    {"KIND", Values::kAnalysisKinds, "analyze"},
    {"COMMAND", Values::kCommands},
    {"EXP", Values::kExperiments},
    {"EXP", Values::kExperimentsOrCells, "analyses"},
    {"EXP", Values::kExperimentsOrCells, "analyze"},
    {"EXP", Values::kExperimentsOrCells, "metrics"},
    {"EXP|FILTER", Values::kExperiments},
    {"EXP/CELL", Values::kCells},
    {"EXP/CELL|models/NAME", Values::kCellsOrModels},
    {"MODEL", Values::kCellsOrModels, "model export"},
    {"EXP[/CELL]", Values::kExperimentsOrCells},
    {"EXP[/PART]", Values::kExperimentsOrParts},
    {"MORE", Values::kExperimentsOrParts, "compare"},
    {"A", Values::kExperimentsOrParts, "diff"},
    {"B", Values::kExperimentsOrParts, "diff"},
    {"DATASET", Values::kDatasets},
    {"TOKENIZER", Values::kDatasets},
    {"NAME", Values::kDatasets, "data get"},
    {"NAME", Values::kDatasets, "data rm"},
    {"NAME", Values::kDatasets, "generate"},
    {"NAME", Values::kModels, "model show"},
    {"NAME", Values::kModels, "model rm"},
    {"USER", Values::kUsers},
    {"NAME", Values::kUsers, "admin audit"},
    {"NAME", Values::kUsers, "admin quota set"},
    {"NAME", Values::kUsers, "admin user role"},
    {"NAME", Values::kUsers, "admin user rm"},
    {"NAME", Values::kUsers, "ls"},
    {"NAME", Values::kServers, "ablate"},  // of --server
    {"NAME", Values::kServers, "logout"},
    {"NAME", Values::kUnknown, "admin init"},
    {"NAME", Values::kUnknown, "admin user add"},
    {"NAME", Values::kUnknown, "edit"},  // a new one
    {"NAME", Values::kUnknown, "login"},
    {"NAME", Values::kUnknown, "model add"},
    {"A,B,…", Values::kUnknown},
    {"ADDRESS", Values::kUnknown},
    {"AXIS", Values::kUnknown},
    {"AXIS=LABEL", Values::kUnknown},
    {"DEVICES", Values::kUnknown},
    {"HOST", Values::kUnknown},
    {"HOST:PORT", Values::kUnknown},
    {"ID,...", Values::kUnknown},
    {"KEY", Values::kUnknown},
    {"LABEL", Values::kUnknown},
    {"LIST", Values::kUnknown},
    {"N", Values::kUnknown},
    {"NAME=VALUE", Values::kUnknown},
    {"NAME=VALUES", Values::kUnknown},
    {"P", Values::kUnknown},
    {"PATH=VALUE", Values::kUnknown},
    {"PREFIX", Values::kUnknown},
    {"QUERY", Values::kUnknown},
    {"SECONDS", Values::kUnknown},
    {"SEEDS", Values::kUnknown},
    {"SETTING=VALUE", Values::kUnknown},
    {"SHARE", Values::kUnknown},
    {"SIZE", Values::kUnknown},
    {"STEP", Values::kUnknown},
    {"TAG", Values::kUnknown},
    {"TEXT", Values::kUnknown},
    {"TOKEN", Values::kUnknown},
    {"WIDTH", Values::kUnknown},
    {"X", Values::kUnknown},
};

}  // namespace

std::optional<Values> ValuesOf(absl::string_view command, absl::string_view metavar) {
  std::optional<Values> values;
  for (const MetavarRow& row : kMetavars) {
    if (row.metavar != metavar) continue;
    if (row.command == command) return row.values;
    if (row.command.empty()) values = row.values;
  }
  return values;
}

}  // namespace ablate::client
