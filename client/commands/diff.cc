// `ablate diff A B`: fields in which two experiments, parts of them or runs differ.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr char kSeeds[] = "seeds";
constexpr int kMaxValues = 8;

struct DiffOptions {
  std::string left, right;
  bool json = false;
};

using Values = google::protobuf::RepeatedPtrField<std::string>;

// Seeds in a row by their first and last: "0 to 11"; "" if they are not so, or fewer than three.
std::string RangeOf(const Values& seeds) {
  uint64_t first = 0, next = 0;
  if (seeds.size() < 3 || !absl::SimpleAtoi(seeds.Get(0), &first)) return "";
  for (int i = 1; i < seeds.size(); ++i) {
    if (!absl::SimpleAtoi(seeds.Get(i), &next) || next != first + static_cast<uint64_t>(i)) {
      return "";
    }
  }
  return absl::StrCat(first, " to ", next);
}

std::string TextOf(const std::string& path, const Values& values) {
  if (path == kSeeds) {
    if (std::string range = RangeOf(values); !range.empty()) return range;
  }
  if (values.empty()) return "–";
  if (values.size() <= kMaxValues) return absl::StrJoin(values, ", ");
  const std::vector<std::string> first(values.begin(), values.begin() + kMaxValues - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", values.size() - (kMaxValues - 1),
                      " more");
}

// An experiment, a part of it, or a run, as the server has it.
std::string NameOf(const std::string& text) {
  return absl::StartsWith(text, "runs/") ? text : ExperimentName(text);
}

std::string WithoutCollection(const std::string& name) {
  return absl::StartsWith(name, "runs/") ? name : Id(name);
}

absl::StatusOr<int> Diff(const DiffOptions& options, const Context& context,
                         Connection* connection) {
  v1::DiffExperimentsRequest request;
  request.set_left(NameOf(options.left));
  request.set_right(NameOf(options.right));
  ASSIGN_OR_RETURN(const v1::DiffExperimentsResponse diff,
                   connection->Call(kDiffExperiments, request));
  if (options.json) return PrintJson(context, diff);
  if (diff.fields().empty()) {
    context.console.Info("no difference");
    return kSuccess;
  }
  Table table({{"field"}, {WithoutCollection(diff.left())}, {WithoutCollection(diff.right())}});
  for (const v1::FieldDifference& field : diff.fields()) {
    table.Add(
        {field.path(), TextOf(field.path(), field.left()), TextOf(field.path(), field.right())});
  }
  *context.console.out << table.Render(0);
  return kSuccess;
}

}  // namespace

Action DefineDiff(Command* command) {
  auto options = std::make_shared<DiffOptions>();
  command->Argument(&options->left, "A", "Experiment, EXP/SETTING, EXP/CELL or runs/ID");
  command->Argument(&options->right, "B", "Another of these");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Defaults are filled in first: a field that is left out equals one that is set to its "
      "default. A field that varies within one side is printed with all its values.\n\n"
      "Examples:\n  ablate diff names-norm names-longer\n"
      "  ablate diff names-norm/pre-lr0.01-s42 names-norm/post-lr0.01-s42");
  return WithServer(options, Diff);
}

}  // namespace ablate::client
