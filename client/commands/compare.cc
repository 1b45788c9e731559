// `ablate compare EXP`: compares the settings of one or several experiments with their baseline.
#include "client/commands/compare.h"

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/gate.h"
#include "client/names.h"
#include "client/output/wrap.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr int32_t kEnd = -1;

absl::Status AddBaseline(const std::string& text, v1::CompareRequest* request) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--baseline: ", reflect::Quoted(text),
                                                   " is not a label of an axis; expected "
                                                   "AXIS=LABEL"));
  }
  // Without an axis the server, which knows them, says what is meant.
  const std::string axis = equals == std::string::npos ? "" : text.substr(0, equals);
  if (!request->mutable_baseline()->insert({axis, text.substr(equals + 1)}).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("--baseline: ", reflect::Quoted(axis), " is given twice"));
  }
  return absl::OkStatus();
}

struct CompareOptions {
  ComparisonOptions comparison;
  GateOptions gate;
  bool decide = false;  // as a gate
  bool json = false;
};

absl::StatusOr<v1::CompareRequest> MakeRequest(const CompareOptions& options) {
  return MakeCompareRequest(options.comparison);
}

absl::StatusOr<int> Compare(const CompareOptions& options, const v1::CompareRequest& request,
                            const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Comparison comparison, connection->Call(kCompare, request));
  if (options.json) return PrintJson(context, comparison);
  const Console& console = context.console;
  *console.out << (console.out_is_terminal ? WrapProse(comparison.text(), console.width)
                                           : comparison.text());
  return kSuccess;
}

}  // namespace

void AddComparisonChoices(Command* command, ComparisonOptions* options, const char* key_help) {
  command->Option(&options->key, "--key,-k", "KEY", key_help);
  command->Option(&options->by, "--by", "AXIS",
                  "Compare along AXIS, separately for each combination of the other axes");
  command->Options(&options->baseline, "--baseline", "AXIS=LABEL",
                   "Use the label of this axis as the baseline [the first]");
  command->Option(&options->at, "--at", "STEP", "Compare at STEP, 0 or more; -1 is the end [-1]");
}

void AddComparisonOptions(Command* command, ComparisonOptions* options, const char* key_help) {
  command->Argument(&options->experiment, "EXP[/PART]",
                    "Experiment, or a part of it as in `ablate compare`");
  AddComparisonChoices(command, options, key_help);
  command->Options(&options->others, "--with", "EXP[/PART]",
                   "Add the settings of this experiment, as in `ablate compare`");
}

absl::StatusOr<v1::CompareRequest> MakeCompareRequest(const ComparisonOptions& options) {
  v1::CompareRequest request;
  request.set_experiment(ExperimentName(options.experiment));
  request.set_key(options.key);
  for (const std::string& other : options.others) request.add_others(ExperimentName(other));
  request.set_by(options.by);
  for (const std::string& baseline : options.baseline) {
    if (absl::Status added = AddBaseline(baseline, &request); !added.ok()) return added;
  }
  if (options.at.empty()) return request;
  int32_t at = 0;
  if (!absl::SimpleAtoi(options.at, &at) || at < kEnd) {
    return absl::InvalidArgumentError(absl::StrCat("--at: ", reflect::Quoted(options.at),
                                                   " is not a step; expected a whole number from 0 "
                                                   "on, or -1 for the end"));
  }
  request.set_at(at);
  return request;
}

Action DefineCompare(Command* command) {
  auto options = std::make_shared<CompareOptions>();
  command->Argument(&options->comparison.experiment, "EXP[/PART]",
                    "Experiment, EXP/SETTING with all its seeds, or EXP/CELL");
  command->OptionalArguments(&options->comparison.others, "MORE",
                             "More of these, compared as further settings");
  AddComparisonChoices(command, &options->comparison);
  command->Flag(&options->decide, "--gate", "Return the decision as exit code, as `ablate judge`");
  AddGateOptions(command, &options->gate);
  command->Flag(&options->json, "--json", "Print the server's message as JSON, with all digits");
  command->Footer(
      "Runs of equal seed are paired. The value of a tuned axis is selected for each seed on the "
      "other seeds of the setting. A diverged run counts as a loss and is left out of means. With "
      "one run of each setting and no tuned axis, numbers of analyses are paired by the sequences "
      "that were read. Formulas: docs/reference/comparison.md.\n\n"
      "With several experiments the first setting named is the baseline, unless --baseline "
      "setting=EXP/SETTING names another. The fields in which their specs differ are printed.\n\n"
      "Examples:\n  ablate compare names-norm\n"
      "  ablate compare names-norm/pre names-longer/pre names-longer/post\n"
      "  ablate compare names-norm --by placement --baseline placement=none --at 100\n"
      "  ablate compare names-norm --json | jq '.rows[] | {\"label\": .label, n, mean}'");
  const Action compare = WithServer(*command, options, MakeRequest, Compare);
  return [options, compare](const Context& context) {
    const GateOptions& gate = options->gate;
    const bool decides = options->decide || gate.looks || gate.next || gate.level.has_value() ||
                         !gate.session.empty();
    if (!decides) return compare(context);
    return RunGate(context, [&](Connection* connection) -> absl::StatusOr<int> {
      ASSIGN_OR_RETURN(v1::CompareRequest request, MakeRequest(*options));
      ASSIGN_OR_RETURN(*request.mutable_gate(), MakeGateRequest(gate));
      ASSIGN_OR_RETURN(const v1::Comparison comparison, connection->Call(kCompare, request));
      return PrintGate(comparison, gate, options->json, context);
    });
  };
}

}  // namespace ablate::client
