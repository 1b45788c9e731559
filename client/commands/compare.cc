// `ablate compare EXP`: what the settings of an experiment came to against their baseline.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/comparison_options.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/utf8.h"

namespace ablate::client {
namespace {

struct Options {
  ComparisonOptions comparison;
  bool json = false;
};

int Compare(const Options& options, const Context& context) {
  const absl::StatusOr<v1::CompareRequest> request = ToRequest(options.comparison);
  if (!request.ok()) {
    context.console.Error(absl::StrCat("ablate compare: ", request.status().message()));
    return kUsage;
  }
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::Comparison> comparison = (*connection)->Compare(*request);
  if (!comparison.ok()) return Fail(context, comparison.status());
  *context.console.out << (options.json ? ToJson(*comparison) : PrintableLines(comparison->text()));
  return kSuccess;
}

}  // namespace

void AddCompare(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("compare", "Compare an experiment's settings with their baseline");
  AddComparisonOptions(&command, &options->comparison);
  command.Flag(&options->json, "--json", "print the server's message: every number, in full");
  command.Footer(
      "Runs of equal seed are paired. Tuned axes are chosen for each setting on its other seeds;\n"
      "a diverged run counts and loses, and is in no mean. docs/comparison.md has the formulas.\n\n"
      "Example:\n  ablate compare names-norm\n"
      "  ablate compare names-norm --by placement --baseline placement=none --at 100\n"
      "  ablate compare names-norm --json | jq '.rows[] | {label, n, mean, difference}'");
  command.Do([options](const Context& context) { return Compare(*options, context); });
}

}  // namespace ablate::client
