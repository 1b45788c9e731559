// `ablate export EXP`: every point in a file, or a folder of files, for other programs.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct ExportOptions {
  std::string experiment;
  std::string format;
  Output output;
  std::vector<std::string> keys;
  bool json = false;
};

// Data received so far.
struct Received {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::string path;  // of the last chunk
  // DATA_LOSS if all arrived except data that are damaged on the server: the file is kept, and the
  // command fails.
  absl::Status damage;
};

void CountChunk(const v1::FileChunk& chunk, Received* received) {
  if (received->files == 0 || chunk.path() != received->path) ++received->files;
  received->path = chunk.path();
  received->bytes += chunk.data().size();
}

// Receives the export and hands each chunk to `write`.
absl::StatusOr<Received> Receive(Connection* connection, const v1::ExportRequest& request,
                                 const OnMessage<v1::FileChunk>& write) {
  Received received;
  absl::Status written;
  const absl::Status status = connection->Stream(kExport, request, [&](const v1::FileChunk& chunk) {
    CountChunk(chunk, &received);
    return written = write(chunk);
  });
  if (!written.ok()) return written;
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  received.damage = status;
  return received;
}

absl::StatusOr<Received> ReceiveFile(Connection* connection, const v1::ExportRequest& request,
                                     const Output& output) {
  PartFile file(output);
  RETURN_IF_ERROR(file.Open());
  const auto received =
      Receive(connection, request, [&](const v1::FileChunk& chunk) -> absl::Status {
        if (chunk.path().empty()) return file.Write(chunk.data());
        return absl::DataLossError("the server sent several files; expected one");
      });
  if (!received.ok()) return received;
  const absl::Status committed = file.Commit();
  return committed.ok() ? received : committed;
}

absl::StatusOr<Received> ReceiveFolder(Connection* connection, const v1::ExportRequest& request,
                                       const Output& output) {
  PartFolder folder(output, [](const std::string& name) {
    return absl::StartsWith(name, "events.out.tfevents.") && absl::EndsWith(name, ".ablate");
  });
  RETURN_IF_ERROR(folder.Open());
  const auto received = Receive(connection, request, [&](const v1::FileChunk& chunk) {
    return folder.Write(chunk.path(), chunk.data());
  });
  if (!received.ok()) return received;
  const absl::Status committed = folder.Commit();
  return committed.ok() ? received : committed;
}

void PrintResult(const ExportOptions& options, const Context& context, const Received& received) {
  if (!options.json) {
    context.console.Info(absl::StrCat(options.output.name(), ": ",
                                      client::Count(received.files, "file"), ", ",
                                      Bytes(received.bytes)));
    return;
  }
  google::protobuf::Struct result;
  auto& fields = *result.mutable_fields();
  fields["path"].set_string_value(options.output.path);
  fields["files"].set_number_value(static_cast<double>(received.files));
  fields["bytes"].set_number_value(static_cast<double>(received.bytes));
  PrintJson(context, result);
}

absl::StatusOr<v1::ExportRequest> MakeRequest(const ExportOptions& options) {
  v1::ExportRequest request;
  v1::ExportFormat::Value format = v1::ExportFormat::unspecified;
  if (!v1::ExportFormat::Value_Parse(options.format, &format) ||
      format == v1::ExportFormat::unspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: ", reflect::Quoted(options.format),
                     " is unknown; expected csv, jsonl or tensorboard"));
  }
  request.set_experiment(ExperimentName(options.experiment));
  request.set_format(format);
  for (const std::string& key : options.keys) request.add_keys(key);
  return request;
}

absl::StatusOr<int> Export(const ExportOptions& options, const v1::ExportRequest& request,
                           const Context& context, Connection* connection) {
  const bool folder = request.format() == v1::ExportFormat::tensorboard;
  ASSIGN_OR_RETURN(const auto received,
                   (folder ? ReceiveFolder : ReceiveFile)(connection, request, options.output));
  PrintResult(options, context, received);
  if (!received.damage.ok()) return received.damage;
  return kSuccess;
}

}  // namespace

Action DefineExport(Command* command) {
  auto options = std::make_shared<ExportOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->RequiredOption(&options->format, "--format", "FORMAT",
                          "Format: csv, jsonl or tensorboard");
  command->RequiredOutput(&options->output, OutputKind::kFileOrFolder, "PATH",
                          "Write to the file PATH, - for standard output; tensorboard: to the "
                          "folder PATH, with a folder for each cell");
  command->Options(&options->keys, "--key,-k", "KEY", "Write only this metric [all]");
  command->Flag(&options->json, "--json", "Print path, number of files and size as JSON");
  command->Footer(
      "Values in csv and jsonl are exact; tensorboard's are rounded to float32. --force replaces a "
      "folder only if it is an earlier tensorboard export.\n\n"
      "Examples:\n  ablate export names-norm --format csv -o names-norm.csv\n"
      "  ablate export names-norm --format tensorboard -o logs/names-norm");
  return WithServer(*command, options, MakeRequest, Export);
}

}  // namespace ablate::client
