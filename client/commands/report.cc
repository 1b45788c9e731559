// `ablate report EXP…`: one HTML page that needs no network.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct ReportOptions {
  std::vector<std::string> experiments;
  ComparisonOptions comparison;
  Output output;
  bool watch = false;
  bool json = false;
};

constexpr absl::Duration kLookEvery = absl::Seconds(5);  // for runs that have ended

// INVALID_ARGUMENT if the output's name says that it is something else than a page.
absl::Status CheckEnding(const std::string& output) {
  const std::string ending = EndingOf(output);
  if (ending.empty() || ending == ".html" || ending == ".htm") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--output: ", reflect::Quoted(output),
                   " does not fit a page; expected a name that ends in .html or .htm, or has no "
                   "suffix. A browser prints the page as PDF."));
}

// The file's name without its folder: a page is passed on, and folders are its maker's own.
std::string NameInCommands(const std::string& output) {
  const std::string name = std::filesystem::path(output).filename().string();
  return absl::StartsWith(name, "-") ? absl::StrCat("./", name) : name;
}

absl::StatusOr<v1::RenderReportRequest> MakeRequest(const ReportOptions& options) {
  const std::string& path = options.output.path;
  RETURN_IF_ERROR(CheckEnding(path));
  ASSIGN_OR_RETURN(const auto comparison, MakeCompareRequest(options.comparison));
  if (options.watch && options.experiments.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("--watch: ", options.experiments.size(),
                                                   " experiments are named; expected one"));
  }
  if (options.watch && options.output.is_standard()) {
    return absl::InvalidArgumentError(
        "--watch: can't be combined with -o -; expected the name of a file");
  }
  v1::RenderReportRequest request;
  for (const std::string& experiment : options.experiments) {
    request.add_experiments(ExperimentName(experiment));
  }
  request.set_key(comparison.key());
  request.set_by(comparison.by());
  *request.mutable_baseline() = comparison.baseline();
  if (comparison.has_at()) request.set_at(comparison.at());
  request.set_output(options.output.is_standard() ? "report.html" : NameInCommands(path));
  return request;
}

// Writes the page as it arrives; the result is how many bytes it has.
absl::StatusOr<uint64_t> Receive(Connection* connection, const v1::RenderReportRequest& request,
                                 const ReportOptions& options) {
  PartFile file(options.output);
  RETURN_IF_ERROR(file.Open());
  uint64_t bytes = 0;
  RETURN_IF_ERROR(connection->Stream(kRenderReport, request, [&](const v1::FileChunk& chunk) {
    bytes += chunk.data().size();
    return file.Write(chunk.data());
  }));
  RETURN_IF_ERROR(file.Commit());
  return bytes;
}

// Writes the page again whenever runs have ended since, until the experiment has: by KeepWatching,
// so that a server may go away for a while.
absl::StatusOr<int> ReportWhileItGoesOn(ReportOptions options,
                                        const v1::RenderReportRequest& request,
                                        const Context& context, Connection* connection) {
  v1::Experiment experiment;
  std::optional<uint64_t> shown;  // how many runs had ended
  const auto look = [&](const std::function<void()>& alive) -> absl::Status {
    ASSIGN_OR_RETURN(experiment, FindExperiment(connection, options.experiments[0]));
    alive();
    const bool over = experiment.state() != v1::ExperimentState::ACTIVE;
    const uint64_t ended = EndedRuns(experiment.counts());
    if (over || shown != ended) {
      ASSIGN_OR_RETURN(const auto bytes, Receive(connection, request, options));
      shown = ended;
      options.output.force = true;  // the file is ours now
      context.console.Info(absl::StrCat(options.output.path, ": ", Bytes(bytes), ", ", ended,
                                        " of ", AllRuns(experiment.counts()), " runs",
                                        over ? "" : ", preliminary"));
    }
    if (over) return absl::OkStatus();
    context.sleep(kLookEvery);
    return absl::UnavailableError("the experiment goes on");
  };
  RETURN_IF_ERROR(KeepWatching(context, look));
  if (options.json) PrintJson(context, experiment);
  return ExitCodeOf(experiment);
}

absl::StatusOr<int> Report(const ReportOptions& options, const v1::RenderReportRequest& request,
                           const Context& context, Connection* connection) {
  if (options.watch) return ReportWhileItGoesOn(options, request, context, connection);
  ASSIGN_OR_RETURN(const auto bytes, Receive(connection, request, options));
  if (!options.json) {
    context.console.Info(absl::StrCat(options.output.name(), ": ", Bytes(bytes)));
    return kSuccess;
  }
  google::protobuf::Struct result;
  (*result.mutable_fields())["path"].set_string_value(options.output.path);
  (*result.mutable_fields())["bytes"].set_number_value(static_cast<double>(bytes));
  return PrintJson(context, result);
}

}  // namespace

Action DefineReport(Command* command) {
  auto options = std::make_shared<ReportOptions>();
  command->Arguments(&options->experiments, "EXP", "Experiments, one section each");
  AddComparisonChoices(command, &options->comparison);
  command->RequiredOutput(&options->output, OutputKind::kFile, "FILE",
                          "Write the page to FILE; - is standard output");
  command->Flag(&options->watch, "--watch",
                "Rewrite the page while runs end, until the experiment has ended; exit as `ablate "
                "wait` does");
  command->Flag(&options->json, "--json",
                "Print path and size as JSON; with --watch, the experiment");
  command->Footer(
      "The page works without a network. It has the answer with its figure, a table, the "
      "differences between specs, samples, methods and provenance: docs/reference/report.md.\n\n"
      "Examples:\n  ablate report names-norm -o report.html\n"
      "  ablate report names-norm -o report.html --watch");
  return WithServer(*command, options, MakeRequest, Report);
}

}  // namespace ablate::client
