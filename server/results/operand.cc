#include "server/results/operand.h"

#include <functional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/experiment/axes.h"
#include "server/lookup/errors.h"
#include "server/report/compare/wording.h"

namespace ablate::results {
namespace {

constexpr size_t kMaxPartBytes = 1024;
constexpr absl::string_view kAllowed =
    "EXP, EXP/CELL such as names-norm/pre-lr0.01-s42, or EXP/SETTING such as names-norm/pre";

}  // namespace

absl::StatusOr<Operand> FindOperand(const lookup::View& view, absl::string_view name,
                                    absl::string_view field) {
  absl::string_view rest = name;
  absl::ConsumePrefix(&rest, "experiments/");
  if (absl::StartsWith(rest, "runs/")) {
    return lookup::InvalidField(field, absl::StrCat(reflect::Quoted(name), " is a run"), kAllowed);
  }
  const size_t slash = rest.find('/');
  Operand operand;
  if (slash != absl::string_view::npos) {
    operand.part = std::string(rest.substr(slash + 1));
    rest = rest.substr(0, slash);
    if (!text::IsPrintable(operand.part, kMaxPartBytes)) {
      return lookup::InvalidField(
          field, absl::StrCat(reflect::Quoted(name), " has an empty or unprintable part"),
          kAllowed);
    }
  }
  ASSIGN_OR_RETURN(operand.experiment, lookup::FindExperiment(view, rest, field));
  return operand;
}

std::string OperandName(const std::string& experiment, absl::string_view part) {
  return part.empty() ? experiment : absl::StrCat(experiment, "/", part);
}

PartNames::PartNames(const v1::ExperimentSpec& spec) {
  spec::Problems problems;  // none, or it would not be stored
  for (const spec::AxisPlan& axis : spec::ReadAxes(spec, &problems)) {
    if (axis.tuned) continue;
    for (const spec::Point& point : axis.points) parts_[{axis.name, point.label}] = point.part;
  }
}

std::string PartNames::Combination(const storage::CellRecord& cell) {
  absl::string_view name = cell.name;
  absl::ConsumeSuffix(&name, absl::StrCat("s", cell.seed));
  absl::ConsumeSuffix(&name, "-");
  return std::string(name);
}

std::string PartNames::Setting(const storage::CellRecord& cell) const {
  std::vector<std::string> parts;
  for (const auto& label : cell.labels) {
    if (const auto part = parts_.find(label); part != parts_.end()) parts.push_back(part->second);
  }
  return absl::StrJoin(parts, "-");
}

absl::StatusOr<std::vector<size_t>> PartNames::Select(const std::vector<storage::CellRecord>& cells,
                                                      const Operand& operand,
                                                      absl::string_view field) const {
  const std::function<std::string(const storage::CellRecord&)> readings[] = {
      [](const storage::CellRecord& cell) { return cell.name; }, Combination,
      [this](const storage::CellRecord& cell) { return Setting(cell); }};
  std::vector<size_t> selected;
  for (const auto& reading : readings) {
    std::vector<size_t> read;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (operand.part.empty() || reading(cells[i]) == operand.part) read.push_back(i);
    }
    if (!read.empty() && !selected.empty() && read != selected) {
      return lookup::InvalidField(
          field,
          absl::StrCat(reflect::Quoted(operand.part), " is the name of a cell and of a setting of ",
                       operand.experiment),
          "an unambiguous name");
    }
    if (selected.empty()) selected = std::move(read);
  }
  if (!selected.empty()) return selected;
  std::set<std::string> seen;
  std::vector<std::string> settings;  // in the grid's order
  std::vector<std::string> known;
  for (const storage::CellRecord& cell : cells) {
    known.insert(known.end(), {cell.name, Combination(cell)});
    std::string setting = Setting(cell);
    if (setting.empty()) setting = Combination(cell);
    if (setting.empty()) setting = cell.name;
    if (seen.insert(setting).second) settings.push_back(std::move(setting));
  }
  return lookup::InvalidField(
      field,
      absl::StrCat(reflect::Quoted(operand.part), " isn't a cell or setting of ",
                   operand.experiment, reflect::DidYouMean(operand.part, known)),
      absl::StrCat("a cell, or one of ", report::Enumerated(settings, 12)));
}

}  // namespace ablate::results
