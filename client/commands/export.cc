// `ablate export EXP`: every point in a file, or a folder of files, for other programs.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/part_folder.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

struct Options {
  std::string experiment;
  std::string format;
  std::string output;
  std::vector<std::string> keys;
  bool force = false;
  bool json = false;
};

// What arrived.
struct Arrived {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::string path;  // of the last chunk
  // DATA_LOSS if all arrived but what is damaged on the server: it is kept, and the command fails.
  absl::Status damage;
};

void Count(const v1::FileChunk& chunk, Arrived* arrived) {
  if (arrived->files == 0 || chunk.path() != arrived->path) ++arrived->files;
  arrived->path = chunk.path();
  arrived->bytes += chunk.data().size();
}

// Receives the export and hands each chunk to `write`.
absl::StatusOr<Arrived> Receive(Connection* connection, const v1::ExportRequest& request,
                                const std::function<absl::Status(const v1::FileChunk&)>& write) {
  Arrived arrived;
  absl::Status written;
  const absl::Status status = connection->Export(request, [&](const v1::FileChunk& chunk) {
    Count(chunk, &arrived);
    return written = write(chunk);
  });
  if (!written.ok()) return written;
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  arrived.damage = status;
  return arrived;
}

absl::StatusOr<Arrived> ReceiveFile(Connection* connection, const v1::ExportRequest& request,
                                    const std::string& path, Existing existing) {
  PartFile file(path, existing);
  if (const absl::Status opened = file.Open(); !opened.ok()) return opened;
  const auto arrived =
      Receive(connection, request, [&](const v1::FileChunk& chunk) -> absl::Status {
        if (chunk.path().empty()) return file.Write(chunk.data());
        return absl::DataLossError("the server sends several files where one is due");
      });
  if (!arrived.ok()) return arrived;
  const absl::Status kept = file.Keep();
  return kept.ok() ? arrived : kept;
}

absl::StatusOr<Arrived> ReceiveFolder(Connection* connection, const v1::ExportRequest& request,
                                      const std::string& path, Existing existing) {
  PartFolder folder(path, existing, [](const std::string& name) {
    return absl::StartsWith(name, "events.out.tfevents.");
  });
  if (const absl::Status opened = folder.Open(); !opened.ok()) return opened;
  const auto arrived = Receive(connection, request, [&](const v1::FileChunk& chunk) {
    return folder.Write(chunk.path(), chunk.data());
  });
  if (!arrived.ok()) return arrived;
  const absl::Status kept = folder.Keep();
  return kept.ok() ? arrived : kept;
}

void Tell(const Options& options, const Context& context, const Arrived& arrived) {
  if (!options.json) {
    context.console.Say(absl::StrCat(options.output, ": ", client::Count(arrived.files, "file"),
                                     ", ", Bytes(arrived.bytes)));
    return;
  }
  google::protobuf::Struct result;
  auto& fields = *result.mutable_fields();
  fields["path"].set_string_value(options.output);
  fields["files"].set_number_value(static_cast<double>(arrived.files));
  fields["bytes"].set_number_value(static_cast<double>(arrived.bytes));
  *context.console.out << ToJson(result);
}

int Export(const Options& options, const Context& context) {
  v1::ExportRequest request;
  v1::ExportFormat::Value format = v1::ExportFormat::unspecified;
  if (!v1::ExportFormat::Value_Parse(options.format, &format) ||
      format == v1::ExportFormat::unspecified) {
    context.console.Error(absl::StrCat("ablate export: --format ", options.format,
                                       " is none of csv, jsonl, tensorboard"));
    return kUsage;
  }
  request.set_experiment(ExperimentName(options.experiment));
  request.set_format(format);
  for (const std::string& key : options.keys) request.add_keys(key);
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const Existing existing = options.force ? Existing::kReplace : Existing::kRefuse;
  std::string path = options.output;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const bool folder = format == v1::ExportFormat::tensorboard;
  const auto arrived =
      (folder ? ReceiveFolder : ReceiveFile)(connection->get(), request, path, existing);
  if (absl::IsAlreadyExists(arrived.status())) {
    return Fail(context, absl::AlreadyExistsError(
                             absl::StrCat(arrived.status().message(), ": --force replaces it")));
  }
  if (!arrived.ok()) return Fail(context, arrived.status());
  Tell(options, context, *arrived);
  if (!arrived->damage.ok()) return Fail(context, arrived->damage);
  return kSuccess;
}

}  // namespace

void AddExport(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("export", "Write every point into a file for other programs");
  command.Argument(&options->experiment, "EXP", "experiment");
  command.RequiredOption(&options->format, "--format", "FORMAT", "csv, jsonl or tensorboard");
  command.RequiredOption(&options->output, "--output,-o", "PATH",
                         "file to write; with tensorboard a folder, with a folder for each cell");
  command.Options(&options->keys, "--key,-k", "KEY", "only this metric; repeatable [all]");
  command.Flag(&options->force, "--force",
               "replace the file, or the folder of an earlier tensorboard export");
  command.Flag(&options->json, "--json", "print path, number of files and bytes");
  command.Footer(
      "Values in csv and jsonl are exact; tensorboard's are rounded to float32.\n\n"
      "Examples:\n  ablate export names-norm --format csv -o names-norm.csv\n"
      "  ablate export names-norm --format tensorboard -o logs/names-norm && tensorboard --logdir "
      "logs");
  command.Do([options](const Context& context) { return Export(*options, context); });
}

}  // namespace ablate::client
