#include "server/results/figures.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/render.h"
#include "server/report/figure/style.h"
#include "server/results/depth.h"
#include "server/rpc/errors.h"
#include "server/rpc/limits.h"

namespace ablate::results {
namespace {

// All of it but the curves, in the width of a column. `compared` outlives it.
figure::Input InputOf(const ComparedGrid& compared, const figure::Kind& kind) {
  figure::Input input;
  input.comparison = &compared.comparison;
  input.axes = compared.grid.input.axes;
  input.windows = &compared.windows;
  input.key = std::string(kind.key);
  input.title = compared.grid.spec.name();
  const v1::ReportSpec& report = compared.grid.spec.report();
  if (report.has_smooth()) input.curves.smooth = report.smooth();
  return input;
}

absl::Status TooManyPoints(const std::string& setting, const std::string& key) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the runs of ", reflect::Quoted(setting), " have more than ", rpc::kMaxCurvePoints,
      " points of ", reflect::Quoted(key), ", the most that a figure is made of"));
}

// The curves of one row's runs, one a seed that has points, in the row's colour. RESOURCE_EXHAUSTED
// if they have more than kMaxCurvePoints.
absl::StatusOr<figure::SettingCurves> ReadSetting(storage::Store* store,
                                                  const ComparedGrid& compared, size_t row,
                                                  const std::string& key,
                                                  const Cancelled& cancelled) {
  const report::ComparisonRow& of = compared.comparison.rows[row];
  figure::SettingCurves setting{of.label, figure::StyleIndices(compared.comparison)[row], {}};
  const std::vector<size_t>& cells = compared.rows[row];
  setting.seeds.resize(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    setting.seeds[i].seed = of.runs[i].seed;
    setting.seeds[i].diverged = of.runs[i].diverged;
  }
  size_t held = 0;
  const auto keep = [&](size_t cell, const Points& points) -> absl::Status {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] != cell) continue;
      held += points.steps.size();
      if (held > rpc::kMaxCurvePoints) return TooManyPoints(of.label, key);
      setting.seeds[i].steps = points.steps;
      setting.seeds[i].values = points.values;
    }
    return absl::OkStatus();
  };
  const absl::Status read = VisitCurves(store, compared.grid, key, cells, cancelled, keep);
  if (!read.ok()) return read;
  return setting;
}

absl::Status ReadSettings(storage::Store* store, const ComparedGrid& compared,
                          const figure::Kind& kind, const Cancelled& cancelled,
                          figure::Input* input) {
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    auto setting = ReadSetting(store, compared, row, input->key, cancelled);
    if (!setting.ok()) return setting.status();
    input->settings.push_back(figure::ReduceSetting(kind, *setting, input->curves));
  }
  return absl::OkStatus();
}

// A figure of a report on its way.
struct Plan {
  const figure::Kind* kind = nullptr;
  figure::Input input;
  absl::Status unread;  // why its curves or metrics by block can't be drawn
};

// One a kind, but of kinds by block one a family in `families`.
std::vector<Plan> PlansOf(const ComparedGrid& compared, const std::vector<std::string>& families) {
  std::vector<Plan> plans;
  const report::Comparison& comparison = compared.comparison;
  const bool many = comparison.rows.size() > figure::kMaxInOnePanel;
  for (const figure::Kind* kind : figure::KindsInReport(comparison)) {
    const std::vector<std::string> own = {std::string(kind->key)};
    for (const std::string& key : kind->by_block ? families : own) {
      Plan plan;
      plan.kind = kind;
      plan.input = InputOf(compared, *kind);
      plan.input.key = key;
      const bool multiples = many && (kind->reduce != nullptr || kind->by_block);
      // Small multiples need the width.
      if (kind->wide || multiples) plan.input.width = figure::kDoubleWidth;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

// Gives every plan that draws curves of `key` what it needs of them.
absl::Status ReduceCurves(storage::Store* store, const ComparedGrid& compared,
                          const std::string& key, const Cancelled& cancelled,
                          std::vector<Plan>* plans) {
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    const auto curves = ReadSetting(store, compared, row, key, cancelled);
    const bool too_many = absl::IsResourceExhausted(curves.status());
    if (!curves.ok() && !too_many) return curves.status();
    for (Plan& plan : *plans) {
      if (plan.kind->reduce == nullptr || plan.input.key != key) continue;
      if (too_many) plan.unread = curves.status();
      if (!plan.unread.ok()) continue;
      plan.input.settings.push_back(figure::ReduceSetting(*plan.kind, *curves, plan.input.curves));
    }
  }
  return absl::OkStatus();
}

// In a page there is no field that a message could be about.
std::string Missing(const absl::Status& status) {
  absl::string_view why = status.message();
  for (const absl::string_view field : {"kind: ", "key: "}) absl::ConsumePrefix(&why, field);
  return absl::StrCat("Not drawn: ", why, ".");
}

html::Figure DrawPlan(const Plan& plan, const std::string& prefix) {
  html::Figure figure;
  // A kind's second figure is told by its key.
  const bool second = plan.input.key != plan.kind->key;
  figure.name = absl::StrCat(plan.kind->name, second ? "-" : "", second ? plan.input.key : "");
  figure.title = std::string(plan.kind->title);
  if (plan.kind->by_block) {
    absl::StrAppend(&figure.title, ": ", figure::NameOfFamily(plan.input.key).text);
  }
  figure.caption = plan.kind->caption(plan.input);
  figure.wide = plan.input.width > figure::kColumnWidth;
  auto drawing = plan.unread.ok() ? figure::Draw(*plan.kind, plan.input)
                                  : absl::StatusOr<figure::Drawing>(plan.unread);
  if (!drawing.ok()) {
    figure.missing = Missing(drawing.status());
    return figure;
  }
  figure.csv = std::move(drawing->csv);
  drawing->figure.name = absl::StrCat(prefix, figure.name);
  figure.svg = figure::Svg(drawing->figure);
  return figure;
}

}  // namespace

absl::StatusOr<figure::Drawing> DrawFigure(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const Cancelled& cancelled) {
  figure::Input input = InputOf(compared, kind);
  input.width = options.width;
  if (kind.reduce != nullptr) {
    if (!options.key.empty()) input.key = options.key;
    const absl::Status read = ReadSettings(store, compared, kind, cancelled, &input);
    if (!read.ok()) return read;
  }
  if (kind.by_block) {
    if (!options.key.empty()) input.key = options.key;
    auto depth = ReadDepth(store, compared, input.key, options.step, cancelled);
    if (!depth.ok()) return depth.status();
    input.depth = *std::move(depth);
  }
  return figure::Draw(kind, input);
}

absl::StatusOr<std::vector<html::Figure>> ReportFigures(storage::Store* store,
                                                        const ComparedGrid& compared,
                                                        const std::string& prefix,
                                                        const Cancelled& cancelled) {
  const auto families = ReportedFamilies(store, compared.grid.record.id);
  if (!families.ok()) return families.status();
  std::vector<Plan> plans = PlansOf(compared, *families);
  std::set<std::string> keys;
  for (const Plan& plan : plans) {
    if (plan.kind->reduce != nullptr) keys.insert(plan.input.key);
  }
  for (const std::string& key : keys) {
    const absl::Status read = ReduceCurves(store, compared, key, cancelled, &plans);
    if (!read.ok()) return read;
  }
  for (Plan& plan : plans) {
    if (!plan.kind->by_block) continue;
    auto depth = ReadDepth(store, compared, plan.input.key, std::nullopt, cancelled);
    if (absl::IsResourceExhausted(depth.status())) plan.unread = depth.status();
    if (!depth.ok() && plan.unread.ok()) return depth.status();
    if (depth.ok()) plan.input.depth = *std::move(depth);
  }
  std::vector<html::Figure> figures;
  for (const Plan& plan : plans) {
    if (cancelled()) return rpc::CallCancelled();
    figures.push_back(DrawPlan(plan, prefix));
  }
  return figures;
}

}  // namespace ablate::results
