// `ablate model export`: writes a model as files that transformers loads.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/part_file.h"

namespace ablate::client {
namespace {

constexpr char kConfigFile[] = "config.json";

struct ExportModelOptions {
  std::string model;
  Output output;
  std::optional<uint32_t> step;
  bool json = false;
};

// Returns true if the folder's config.json has the member that every export gets, and that
// transformers ignores.
bool IsExport(const std::string& folder) {
  google::protobuf::Struct config;
  const std::string text = process::ReadWholeFile(absl::StrCat(folder, "/", kConfigFile));
  return google::protobuf::util::JsonStringToMessage(text, &config).ok() &&
         config.fields().count("ablate") > 0;
}

absl::StatusOr<int> ExportModel(const ExportModelOptions& options, const Context& context,
                                Connection* connection) {
  v1::ExportModelRequest request;
  request.set_name(options.model);
  if (!absl::StartsWith(options.model, "models/")) {
    ASSIGN_OR_RETURN(const std::string run, FindRun(connection, options.model));
    request.set_name(run);
  }
  if (options.step) request.set_step(*options.step);
  const auto ours = [](const std::string& name) {
    return name == kConfigFile || name == "model.safetensors";
  };
  PartFolder folder(options.output, ours, IsExport);
  RETURN_IF_ERROR(folder.Open());
  std::set<std::string> files;
  uint64_t bytes = 0;
  absl::Status written;
  const absl::Status received =
      connection->Stream(kExportModel, request, [&](const v1::FileChunk& chunk) {
        files.insert(chunk.path());
        bytes += chunk.data().size();
        return written = folder.Write(chunk.path(), chunk.data());
      });
  if (!written.ok()) return written;
  if (!received.ok()) return received;
  RETURN_IF_ERROR(folder.Commit());
  if (!options.json) {
    context.console.Info(
        absl::StrCat(options.output.path, ": ", Count(files.size(), "file"), ", ", Bytes(bytes)));
    return kSuccess;
  }
  google::protobuf::Struct result;
  auto& fields = *result.mutable_fields();
  fields["path"].set_string_value(options.output.path);
  fields["files"].set_number_value(static_cast<double>(files.size()));
  fields["bytes"].set_number_value(static_cast<double>(bytes));
  return PrintJson(context, result);
}

}  // namespace

Action DefineModelExport(Command* command) {
  auto options = std::make_shared<ExportModelOptions>();
  command->Argument(&options->model, "MODEL", "models/NAME, a cell EXP/CELL, or runs/ID");
  command->RequiredOutput(&options->output, OutputKind::kFolder, "FOLDER",
                          "Write config.json and model.safetensors to FOLDER");
  command->Option(&options->step, "--step", "N", "Write a run's checkpoint of step N [the last]");
  command->Flag(&options->json, "--json", "Print path, number of files and size as JSON");
  command->Footer(
      "The files of GPT-2, Llama, Qwen2, Qwen3 or GPT-NeoX must be able to hold the model. An "
      "error "
      "names the field that keeps it out. transformers loads the files, unless a GPT-2 has other "
      "norms. --force replaces only the folder of an earlier export, by the member \"ablate\" of "
      "its "
      "config.json.\n\n"
      "Examples:\n  ablate model export fine-tuned/s0 -o fine-tuned\n"
      "  ablate model export models/gpt2 -o gpt2-copy");
  return WithServer(options, ExportModel);
}

}  // namespace ablate::client
