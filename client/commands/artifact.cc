// `ablate artifact ls | get`: the checkpoints of a run, as safetensors files, or the files that a
// program has kept.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/file_set_folder.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr char kOutput[] = "output";      // kind of the files that a program has kept
constexpr char kOutputPrefix[] = "out/";  // of their paths

struct ArtifactOptions {
  std::string run;
  std::string kind;
  std::optional<uint32_t> step;
  Output output;
  bool json = false;
};

absl::StatusOr<v1::ListArtifactsResponse> List(Connection* connection, const std::string& text) {
  ASSIGN_OR_RETURN(const std::string run, FindRun(connection, text));
  v1::ListArtifactsRequest request;
  request.set_run(run);
  absl::StatusOr<v1::ListArtifactsResponse> list = connection->Call(kListArtifacts, request);
  if (!list.ok()) return ExplainRunError(connection, list.status(), text);
  return list;
}

absl::StatusOr<int> Ls(const ArtifactOptions& options, const Context& context,
                       Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListArtifactsResponse list, List(connection, options.run));
  if (options.json) return PrintJson(context, list);
  Table table({{"kind"}, {"step", true}, {"size", true}, {"sha256"}});
  for (const v1::Artifact& artifact : list.artifacts()) {
    table.Add({artifact.kind(), text::Grouped(artifact.step()), Bytes(artifact.bytes()),
               artifact.sha256()});
  }
  return PrintTable(context, table);
}

// The artifact of the wanted kind at the wanted step, by default the last one.
absl::StatusOr<v1::Artifact> Choose(const v1::ListArtifactsResponse& list,
                                    const ArtifactOptions& options) {
  std::optional<v1::Artifact> chosen;
  std::vector<std::string> steps;
  for (const v1::Artifact& artifact : list.artifacts()) {
    if (artifact.kind() != options.kind) continue;
    steps.push_back(absl::StrCat(artifact.step()));
    if (!options.step || artifact.step() == *options.step) chosen = artifact;
  }
  if (chosen) return *std::move(chosen);
  if (list.artifacts().empty()) {
    return absl::NotFoundError(absl::StrCat(options.run, " has no artifacts yet"));
  }
  if (steps.empty()) {
    std::set<std::string> kinds;
    for (const v1::Artifact& artifact : list.artifacts()) kinds.insert(artifact.kind());
    return absl::NotFoundError(
        absl::StrCat(options.run, " has no ", options.kind, ", but ", absl::StrJoin(kinds, ", ")));
  }
  return absl::NotFoundError(absl::StrCat(options.run, " has no ", options.kind, " at step ",
                                          *options.step, "; steps: ", absl::StrJoin(steps, ", ")));
}

// Writes the artifact, and returns its size in words.
absl::StatusOr<std::string> Fetch(Connection* connection, const v1::Artifact& artifact,
                                  const ArtifactOptions& options, const Sleep& sleep) {
  const ReadFrom read = ReadArtifact(connection, artifact);
  const RemoteFile remote = RemoteOf(artifact);
  const std::string size = Bytes(artifact.bytes());
  if (artifact.kind() != kOutput) {
    RETURN_IF_ERROR(Download(remote, options.output, read, sleep));
    return size;
  }
  ASSIGN_OR_RETURN(const size_t files,
                   WriteFileSet(remote, read, sleep, kOutputPrefix, options.output));
  return absl::StrCat(Count(files, "file"), ", ", size);
}

absl::StatusOr<int> Get(const ArtifactOptions& options, const Context& context,
                        Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListArtifactsResponse list, List(connection, options.run));
  ASSIGN_OR_RETURN(const v1::Artifact artifact, Choose(list, options));
  ASSIGN_OR_RETURN(const std::string size, Fetch(connection, artifact, options, context.sleep));
  if (options.json) return PrintJson(context, artifact);
  context.console.Info(absl::StrCat(options.output.name(), ": ", artifact.kind(), " at step ",
                                    artifact.step(), ", ", size));
  return kSuccess;
}

}  // namespace

Action DefineArtifactLs(Command* command) {
  auto options = std::make_shared<ArtifactOptions>();
  command->Argument(&options->run, "EXP/CELL", kCellHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate artifact ls names-norm/pre-lr0.01-s42");
  return WithServer(options, Ls);
}

Action DefineArtifactGet(Command* command) {
  auto options = std::make_shared<ArtifactOptions>();
  command->Argument(&options->run, "EXP/CELL", kCellHelp);
  command->Argument(&options->kind, "KIND", "Kind of artifact: checkpoint or output");
  command->Option(&options->step, "--step", "N", "Write the one of step N [the last]");
  command->RequiredOutput(&options->output, OutputKind::kFileOrFolder, "PATH",
                          "Write a checkpoint to the file PATH as safetensors, or the files of an "
                          "output into the new folder PATH");
  command->Flag(&options->json, "--json", "Print kind, step, size and hash as JSON");
  command->Footer(
      "PATH is complete or isn't written. The output has the files that a program left in out/ "
      "when "
      "it ended. --force replaces only a folder with the file .ablate, which this command writes."
      "\n\nExamples:\n"
      "  ablate artifact get names-norm/pre-lr0.01-s42 checkpoint -o pre.safetensors\n"
      "  ablate artifact get my-program/s0 output -o out");
  return WithServer(options, Get);
}

}  // namespace ablate::client
