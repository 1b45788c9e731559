// Options of `ablate import` and `ablate judge`, and their call.
#ifndef ABLATE_CLIENT_COMMANDS_IMPORT_H_
#define ABLATE_CLIENT_COMMANDS_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/statusor.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/imports/source.h"

namespace ablate::client {

struct ReadingOptions {
  SourceOptions source;
  std::vector<std::string> settings, tune, baseline;
  std::string names, at, better;
  std::optional<double> margin;
};

// Adds the options that say how results are read: --setting, --seed, --metric and others.
void AddReadingOptions(Command* command, ReadingOptions* options);

// Returns the options of the request. INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::ImportOptions> MakeImportOptions(const ReadingOptions& options);

// Reads the results; `options` are MakeImportOptions's. Errors as ReadResults's.
absl::StatusOr<std::vector<v1::ImportRequest>> ReadMessages(const ReadingOptions& reading,
                                                            const v1::ImportOptions& options,
                                                            const Context& context);

// Sends results with these options.
absl::StatusOr<v1::ImportResponse> SendResults(std::vector<v1::ImportRequest> messages,
                                               const v1::ImportOptions& options,
                                               Connection* connection);

// Sets what identifies a new experiment, which is named after the first path by default.
void IdentifyImport(const ReadingOptions& reading, const std::string& name,
                    v1::ImportOptions* options);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMANDS_IMPORT_H_
