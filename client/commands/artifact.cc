// `ablate artifact ls | get`: the checkpoints of a run, as safetensors files.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/artifact_download.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/table.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

struct Options {
  std::string run;
  std::string kind;
  std::optional<uint32_t> step;
  std::string output;
  bool json = false;
};

absl::StatusOr<v1::ListArtifactsResponse> List(Connection* connection, const std::string& text) {
  const absl::StatusOr<std::string> run = FindRun(connection, text);
  if (!run.ok()) return run.status();
  v1::ListArtifactsRequest request;
  request.set_run(*run);
  absl::StatusOr<v1::ListArtifactsResponse> list = connection->ListArtifacts(request);
  if (!list.ok()) return ExplainRunError(list.status(), text);
  return list;
}

int Ls(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::ListArtifactsResponse> list = List(connection->get(), options.run);
  if (!list.ok()) return Fail(context, list.status());
  if (options.json) {
    *context.console.out << ToJson(*list);
    return kSuccess;
  }
  Table table({{"kind"}, {"step", true}, {"size", true}, {"sha256"}});
  for (const v1::Artifact& artifact : list->artifacts()) {
    table.Add({artifact.kind(), text::Grouped(artifact.step()), Bytes(artifact.bytes()),
               artifact.sha256()});
  }
  *context.console.out << table.Render(context.console.table_width());
  return kSuccess;
}

// The artifact of the wanted kind at the wanted step, by default the last one.
absl::StatusOr<v1::Artifact> Choose(const v1::ListArtifactsResponse& list, const Options& options) {
  std::optional<v1::Artifact> chosen;
  std::vector<std::string> steps;
  for (const v1::Artifact& artifact : list.artifacts()) {
    if (artifact.kind() != options.kind) continue;
    steps.push_back(absl::StrCat(artifact.step()));
    if (!options.step || artifact.step() == *options.step) chosen = artifact;
  }
  if (chosen) return *std::move(chosen);
  if (steps.empty()) {
    return absl::NotFoundError(absl::StrCat(options.run, " has no ", options.kind, " (yet)"));
  }
  return absl::NotFoundError(absl::StrCat(options.run, " has no ", options.kind, " at step ",
                                          *options.step, "; steps: ", absl::StrJoin(steps, ", ")));
}

int Get(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::ListArtifactsResponse> list = List(connection->get(), options.run);
  if (!list.ok()) return Fail(context, list.status());
  const absl::StatusOr<v1::Artifact> artifact = Choose(*list, options);
  if (!artifact.ok()) return Fail(context, artifact.status());
  const absl::Status status = Download(connection->get(), *artifact, options.output, context.sleep);
  if (!status.ok()) return Fail(context, status);
  if (options.json) {
    *context.console.out << ToJson(*artifact);
  } else {
    context.console.Say(absl::StrCat(options.output, ": ", artifact->kind(), " at step ",
                                     artifact->step(), ", ", Bytes(artifact->bytes())));
  }
  return kSuccess;
}

}  // namespace

void AddArtifact(Command root) {
  auto options = std::make_shared<Options>();
  Command group = root.Add("artifact", "List and fetch what runs leave: checkpoints");
  group.Footer(
      "Example:\n  ablate artifact get names-norm/pre-lr0.01-s42 checkpoint -o pre.safetensors");

  Command ls = group.Add("ls", "List a run's artifacts");
  ls.Argument(&options->run, "EXP/CELL", "a cell, or runs/ID");
  ls.Flag(&options->json, "--json", "print the server's message");
  ls.Footer("Example:\n  ablate artifact ls names-norm/pre-lr0.01-s42");
  ls.Do([options](const Context& context) { return Ls(*options, context); });

  Command get = group.Add("get", "Fetch an artifact into a file");
  get.Argument(&options->run, "EXP/CELL", "a cell, or runs/ID");
  get.Argument(&options->kind, "KIND", "checkpoint");
  get.Option(&options->step, "--step", "N", "at this step [the last]");
  get.RequiredOption(&options->output, "--output,-o", "FILE", "file to write, in safetensors");
  get.Flag(&options->json, "--json", "print what the artifact is");
  get.Footer(
      "Example:\n  ablate artifact get names-norm/pre-lr0.01-s42 checkpoint -o pre.safetensors");
  get.Do([options](const Context& context) { return Get(*options, context); });
}

}  // namespace ablate::client
