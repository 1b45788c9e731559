// Reads results that other tools have written, and divides them into messages for the server.
#ifndef ABLATE_CLIENT_IMPORTS_SOURCE_H_
#define ABLATE_CLIENT_IMPORTS_SOURCE_H_

#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/statusor.h"
#include "client/context.h"
#include "client/imports/table_runs.h"

namespace ablate::client {

struct SourceOptions {
  std::vector<std::string> paths;
  std::string tool;    // that wrote the files; empty: it is found out
  std::string python;  // that has the readers of other tools' files
  TableOptions table;
};

// Returns the messages of results: the first has `source` and `notes`. Reads tables by itself
// (names that end in .csv, .tsv or .jsonl, or - for CSV from standard input), and all else by the
// Python package, whose errors go to standard error. Several tables have a setting `file`, in the
// order of the paths. NOT_FOUND, INVALID_ARGUMENT naming the file, FAILED_PRECONDITION without the
// Python package.
absl::StatusOr<std::vector<v1::ImportRequest>> ReadResults(const SourceOptions& options,
                                                           const Context& context);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_IMPORTS_SOURCE_H_
