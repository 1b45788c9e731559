// `ablate report EXP…`: one HTML page that needs no network.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/own_file.h"
#include "client/output/part_file.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

struct Options {
  std::vector<std::string> experiments;
  ComparisonOptions comparison;
  std::string output;
  bool force = false;
  bool json = false;
};

absl::StatusOr<v1::RenderReportRequest> MakeRequest(const Options& options) {
  const auto comparison = MakeCompareRequest(options.comparison);
  if (!comparison.ok()) return comparison.status();
  v1::RenderReportRequest request;
  for (const std::string& experiment : options.experiments) {
    request.add_experiments(ExperimentName(experiment));
  }
  request.set_key(comparison->key());
  request.set_by(comparison->by());
  *request.mutable_baseline() = comparison->baseline();
  if (comparison->has_at()) request.set_at(comparison->at());
  return request;
}

// Writes the page as it arrives; the result is how many bytes it has.
absl::StatusOr<uint64_t> Receive(Connection* connection, const v1::RenderReportRequest& request,
                                 const Options& options) {
  PartFile file(options.output, ReplaceOwn(options.output, FileKind::kPage, options.force));
  if (const absl::Status opened = file.Open(); !opened.ok()) return opened;
  uint64_t bytes = 0;
  const absl::Status received = connection->RenderReport(request, [&](const v1::FileChunk& chunk) {
    bytes += chunk.data().size();
    return file.Write(chunk.data());
  });
  if (!received.ok()) return received;
  if (const absl::Status committed = file.Commit(); !committed.ok()) return committed;
  return bytes;
}

absl::StatusOr<int> Report(const Options& options, const v1::RenderReportRequest& request,
                           const Context& context, Connection* connection) {
  const auto bytes = Receive(connection, request, options);
  if (!bytes.ok()) return bytes.status();
  if (!options.json) {
    context.console.Info(absl::StrCat(options.output, ": ", Bytes(*bytes)));
    return kSuccess;
  }
  google::protobuf::Struct result;
  (*result.mutable_fields())["path"].set_string_value(options.output);
  (*result.mutable_fields())["bytes"].set_number_value(static_cast<double>(*bytes));
  return PrintJson(context, result);
}

}  // namespace

Action DefineReport(Command* command) {
  auto options = std::make_shared<Options>();
  command->Arguments(&options->experiments, "EXP", "experiments, a section each");
  AddComparisonChoices(command, &options->comparison);
  command->RequiredOption(&options->output, "--output,-o", "FILE",
                          "page to write; an earlier report there is replaced");
  command->Flag(&options->force, "--force", "replace also a file that is no report");
  command->Flag(&options->json, "--json", "print path and bytes");
  command->Footer(
      "The page needs no network and no script: verdict, table, differences of the specs, "
      "figures,\n"
      "samples, methods and provenance. docs/report.md says what stands where.\n\n"
      "Example:\n  ablate report names-norm -o report.html");
  return WithServer(*command, options, MakeRequest, Report);
}

}  // namespace ablate::client
