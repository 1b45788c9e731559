// Divides a table of results into runs: which columns are settings, metrics, steps and seeds.
#ifndef ABLATE_CLIENT_IMPORTS_TABLE_RUNS_H_
#define ABLATE_CLIENT_IMPORTS_TABLE_RUNS_H_

#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/statusor.h"
#include "client/imports/table.h"

namespace ablate::client {

// Names columns of a table; empty: those that are called so.
struct TableOptions {
  std::vector<std::string> settings = {};
  std::string seed = {};
  std::string metric = {};
  std::string item = {};   // column of what each value is about, such as a document
  std::string group = {};  // column of the items' groups
};

struct TableRuns {
  std::vector<v1::ImportedRun> runs;
  std::vector<std::string> notes;
};

// Returns the runs of a table. A table is one of two:
//
// - long: columns `key` (or `metric`) and `value`, and perhaps `step`. All others are settings.
// - wide: a column per metric, and perhaps `step`. Columns of texts are settings, and so is the
//   seed. Of the other columns of numbers, one alone is the metric. Several are metrics if the
//   settings are named; otherwise the caller has to.
//
// Rows with equal settings and names are points of one run if there are steps, and items of it if
// there is a column of those. INVALID_ARGUMENT names the option that tells the readings apart, or
// file and line.
absl::StatusOr<TableRuns> RunsOf(const ResultTable& table, const TableOptions& options);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_IMPORTS_TABLE_RUNS_H_
