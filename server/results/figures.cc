#include "server/results/figures.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/report/compare/metric_names.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/render.h"
#include "server/report/figure/style.h"
#include "server/results/analyzed.h"
#include "server/results/families.h"

namespace ablate::results {
namespace {

// Returns the key of a kind's figure unless another is requested. Curves of a program are of the
// compared metric, because it may log no train/loss.
std::string DefaultKey(const figure::Kind& kind, const report::Comparison& comparison) {
  const bool own =
      comparison.source == report::MetricSource::kProgram && kind.reads == figure::Reads::kCurves;
  return own || kind.key.empty() ? comparison.key : std::string(kind.key);
}

// Returns the input of a figure except the curves, one column wide. `compared` must outlive it. If
// `key` is empty, it is the kind's or the compared one.
figure::Input InputOf(const ComparedGrid& compared, const figure::Kind& kind,
                      const std::string& key) {
  figure::Input input;
  input.comparison = &compared.comparison;
  input.axes = compared.grid.input.axes;
  input.windows = &compared.windows;
  input.key = key;
  if (key.empty()) input.key = DefaultKey(kind, compared.comparison);
  input.title = compared.grid.spec.name();
  const v1::ReportSpec& report = compared.grid.spec.report();
  if (report.has_smooth()) {
    input.curves.smooth = report.smooth();
  } else if (compared.comparison.source == report::MetricSource::kProgram) {
    input.curves.smooth = 1;  // its points may be far apart
  }
  if (absl::StartsWith(input.key, "eval/")) input.curves.smooth = 1;
  // Paired curves are differences on the comparison's scale already.
  const report::Scale scale = input.key == compared.comparison.key
                                  ? compared.comparison.scale
                                  : report::ScaleOfMetric(input.key, compared.comparison.source);
  input.curves.log = kind.reads != figure::Reads::kPairs && scale == report::Scale::kRatio;
  return input;
}

absl::Status TooManyPoints(const std::string& setting, const std::string& key) {
  return absl::ResourceExhaustedError(
      absl::StrCat("key: the runs of ", reflect::Quoted(setting), " have more than ",
                   lookup::kMaxCurvePoints, " points of ", reflect::Quoted(key),
                   ", the limit of a figure. Choose a metric with fewer points"));
}

// Reads the curves of one row's runs, one per seed that has points, in the row's colour.
// RESOURCE_EXHAUSTED if they have more than kMaxCurvePoints.
absl::StatusOr<figure::SettingCurves> ReadSetting(storage::Store* store,
                                                  const ComparedGrid& compared, size_t row,
                                                  size_t style, const std::string& key,
                                                  const lookup::Cancelled& cancelled) {
  const report::ComparisonRow& of = compared.comparison.rows[row];
  figure::SettingCurves setting{of.label, style, {}};
  std::vector<size_t> cells;
  for (const ChosenRun& run : compared.chosen[row]) {
    cells.push_back(run.cell);
    figure::SeedCurve& seed = setting.seeds.emplace_back();
    seed.seed = run.seed;
    seed.diverged = run.diverged;
  }
  size_t held = 0;
  const auto keep = [&](size_t cell, const analysis::Points& points) -> absl::Status {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] != cell) continue;
      held += points.steps.size();
      if (held > lookup::kMaxCurvePoints) return TooManyPoints(of.label, key);
      setting.seeds[i].steps = points.steps;
      setting.seeds[i].values = points.values;
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(VisitCurves(store, compared.grid, key, cells, cancelled, keep));
  return setting;
}

// Reads curves one row at a time. Keeps the curves of the baseline that rows are paired with as
// long as rows have the same one.
class RowCurves {
 public:
  // `compared` must outlive it.
  RowCurves(storage::Store* store, const ComparedGrid& compared, std::string key,
            lookup::Cancelled cancelled)
      : store_(store),
        compared_(compared),
        styles_(figure::StyleIndices(compared.comparison)),
        key_(std::move(key)),
        cancelled_(std::move(cancelled)) {}

  absl::StatusOr<figure::SettingCurves> Read(size_t row) const {
    return ReadSetting(store_, compared_, row, styles_[row], key_, cancelled_);
  }

  // Returns what a kind draws of `curves`, the row's: the curves, or their differences to the
  // baseline's; nothing for a row without any.
  absl::StatusOr<std::optional<figure::ReducedSetting>> Reduce(
      const figure::Kind& kind, size_t row, const figure::SettingCurves& curves,
      const figure::CurveOptions& options) {
    if (kind.reads != figure::Reads::kPairs) return figure::ReduceSetting(kind, curves, options);
    const report::ComparisonRow& of = compared_.comparison.rows[row];
    if (!of.in_family()) return std::nullopt;
    if (baseline_row_ != of.baseline) {
      ASSIGN_OR_RETURN(baseline_, Read(*of.baseline));
      baseline_row_ = of.baseline;
    }
    return figure::ReduceSetting(
        kind, figure::PairedCurves(compared_.comparison.scale, curves, baseline_), options);
  }

 private:
  storage::Store* const store_;
  const ComparedGrid& compared_;
  const std::vector<size_t> styles_;  // of all rows
  const std::string key_;
  const lookup::Cancelled cancelled_;
  std::optional<size_t> baseline_row_;
  figure::SettingCurves baseline_;
};

// Returns true if the kind draws curves, unpaired or paired.
bool DrawsCurves(const figure::Kind& kind) { return kind.reduce != nullptr; }

absl::Status ReadSettings(storage::Store* store, const ComparedGrid& compared,
                          const figure::Kind& kind, const lookup::Cancelled& cancelled,
                          figure::Input* input) {
  RowCurves rows(store, compared, input->key, cancelled);
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    ASSIGN_OR_RETURN(const auto curves, rows.Read(row));
    ASSIGN_OR_RETURN(auto setting, rows.Reduce(kind, row, curves, input->curves));
    if (setting.has_value()) input->settings.push_back(*std::move(setting));
  }
  return absl::OkStatus();
}

// A figure of a report in preparation.
struct Plan {
  const figure::Kind* kind = nullptr;
  figure::Input input;
  std::string name;     // distinct in a report: letters, digits and hyphens
  absl::Status unread;  // why its curves, family or arrays can't be drawn
};

// The families that a report shows.
using Families = std::map<figure::Along, std::vector<std::string>>;

// Returns the keys of a kind's figures: one per family in `families` for kinds that read one, one
// per label for analyses, otherwise one.
std::vector<std::string> KeysOf(const figure::Kind& kind, const report::Comparison& comparison,
                                const Families& families, const LabelledResults& results) {
  const std::optional<figure::Along> along = figure::AlongOf(kind);
  if (along.has_value()) return families.at(*along);
  if (kind.reads == figure::Reads::kAnalysis) return results.LabelsFor(kind);
  return {DefaultKey(kind, comparison)};
}

// Returns the name of a kind's figure and adds it to `names`; a second figure's name has its key.
std::string NameOf(const figure::Kind& kind, const std::string& key,
                   const report::Comparison& comparison, std::set<std::string>* names) {
  std::string name(kind.name);
  if (!kind.key.empty() && key != DefaultKey(kind, comparison)) absl::StrAppend(&name, "-", key);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !absl::ascii_isalnum(static_cast<unsigned char>(c)); }, '-');
  std::string distinct = name;
  for (int i = 2; !names->insert(distinct).second; ++i) distinct = absl::StrCat(name, "-", i);
  return distinct;
}

// Returns the metric that a report shows over all steps: the compared one if it is of held-out
// data, or a program's.
std::string LossOf(const report::Comparison& comparison) {
  const bool shown = absl::StartsWith(comparison.key, "eval/") ||
                     comparison.source == report::MetricSource::kProgram;
  return shown ? comparison.key : std::string(figure::kLoss.key);
}

std::vector<Plan> PlansOf(const ComparedGrid& compared, const Families& families,
                          const LabelledResults& results) {
  std::vector<Plan> plans;
  const report::Comparison& comparison = compared.comparison;
  const bool many = comparison.rows.size() > figure::kMaxInOnePanel;
  std::set<std::string> names;
  for (const figure::Kind* kind : figure::KindsInReport(comparison)) {
    for (const std::string& key : KeysOf(*kind, comparison, families, results)) {
      Plan plan;
      plan.kind = kind;
      plan.input = InputOf(compared, *kind, kind == &figure::kLoss ? LossOf(comparison) : key);
      const bool multiples = many && kind->reads != figure::Reads::kComparison &&
                             kind->reads != figure::Reads::kWindows;
      // Small multiples need the width.
      if (kind->wide || multiples) plan.input.width = figure::kDoubleWidth;
      plan.name = NameOf(*kind, key, comparison, &names);
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

// Adds to every plan that draws curves of `key` the data it needs of them.
absl::Status ReduceCurves(storage::Store* store, const ComparedGrid& compared,
                          const std::string& key, const lookup::Cancelled& cancelled,
                          std::vector<Plan>* plans) {
  RowCurves rows(store, compared, key, cancelled);
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    const auto curves = rows.Read(row);
    const bool too_many = absl::IsResourceExhausted(curves.status());
    if (!curves.ok() && !too_many) return curves.status();
    for (Plan& plan : *plans) {
      if (!DrawsCurves(*plan.kind) || plan.input.key != key) continue;
      if (too_many) plan.unread = curves.status();
      if (!plan.unread.ok()) continue;
      auto setting = rows.Reduce(*plan.kind, row, *curves, plan.input.curves);
      if (absl::IsResourceExhausted(setting.status())) plan.unread = setting.status();
      if (!plan.unread.ok()) continue;
      if (!setting.ok()) return setting.status();
      if (setting->has_value()) plan.input.settings.push_back(**std::move(setting));
    }
  }
  return absl::OkStatus();
}

// Adds its data to a plan of a family of metrics or of an analysis.
absl::Status ReadAtLastStep(storage::Store* store, const ComparedGrid& compared,
                            const LabelledResults& results, const lookup::Cancelled& cancelled,
                            Plan* plan) {
  if (const auto along = figure::AlongOf(*plan->kind); along.has_value()) {
    auto family = ReadFamily(store, compared, *along, plan->input.key, std::nullopt, cancelled);
    if (absl::IsResourceExhausted(family.status())) plan->unread = family.status();
    if (!family.ok()) return plan->unread.ok() ? family.status() : absl::OkStatus();
    plan->input.family = *std::move(family);
  }
  if (plan->kind->reads == figure::Reads::kAnalysis) {
    auto analyzed = results.Read(compared, *plan->kind, plan->input.key, std::nullopt, cancelled);
    // Arrays that can't be read don't affect the rest of the page.
    const bool unread =
        absl::IsResourceExhausted(analyzed.status()) || absl::IsDataLoss(analyzed.status()) ||
        absl::IsNotFound(analyzed.status()) || absl::IsFailedPrecondition(analyzed.status());
    if (unread) plan->unread = analyzed.status();
    if (!analyzed.ok()) return unread ? absl::OkStatus() : analyzed.status();
    plan->input.analyzed = *std::move(analyzed);
    // Maps of several settings are placed side by side.
    const bool maps = !plan->input.analyzed.form->every_seed;
    if (maps && compared.rows.size() > 1) plan->input.width = figure::kDoubleWidth;
  }
  return absl::OkStatus();
}

// A page has no field that a message could refer to.
std::string Missing(const absl::Status& status) {
  absl::string_view why = status.message();
  for (const absl::string_view field : {"kind: ", "key: "}) absl::ConsumePrefix(&why, field);
  return absl::StrCat("Not drawn: ", why, ".");
}

// Returns true if some curve has more than one point.
bool HasCurves(const figure::Input& input) {
  return std::any_of(input.settings.begin(), input.settings.end(),
                     [](const figure::ReducedSetting& setting) {
                       return setting.panels[0].last_step > setting.panels[0].first_step;
                     });
}

html::Figure DrawPlan(const Plan& plan, const std::string& prefix) {
  html::Figure figure;
  figure.name = plan.name;
  figure.title = std::string(plan.kind->title);
  figure.folded = plan.kind->folded;
  const bool of_label =
      figure::AlongOf(*plan.kind).has_value() || plan.kind->reads == figure::Reads::kAnalysis;
  if (of_label) figure.label = plan.input.key.substr(0, plan.input.key.find('/'));
  if (plan.kind == &figure::kLoss) {
    figure.title = absl::StrCat(figure::SentenceName(plan.input.Metric()), " over training");
  }
  if (plan.kind == &figure::kDifference) figure.cautions = figure::ReversalTexts(plan.input);
  if (const auto along = figure::AlongOf(*plan.kind); along.has_value()) {
    const std::string& family = plan.input.key;
    absl::StrAppend(&figure.title, ": ",
                    figure::FamilyText(*along, family, plan.input.comparison->source));
    // A key of an analysis begins with its label.
    const size_t label = family.find('/');
    if (label != std::string::npos) {
      absl::StrAppend(&figure.title, " (", family.substr(0, label), ")");
    }
  }
  if (plan.kind->reads == figure::Reads::kAnalysis) {
    absl::StrAppend(&figure.title, ": ", plan.input.key);
  }
  // An analysis that was not read has nothing to describe.
  const bool known =
      plan.kind->reads != figure::Reads::kAnalysis || figure::HasSeeds(plan.input.analyzed);
  if (known) figure.caption = plan.kind->caption(plan.input);
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

bool HasSeveralExperiments(const ComparedGrid& compared) {
  const std::string& one = compared.grid.record.id;
  return std::any_of(compared.operands.begin(), compared.operands.end(),
                     [&one](const std::string& operand) {
                       return operand != one && !absl::StartsWith(operand, absl::StrCat(one, "/"));
                     });
}

// Draws the requested label, or all that the kind draws by default, one below another.
absl::StatusOr<figure::Drawing> DrawLabels(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const lookup::Cancelled& cancelled,
                                           figure::Input input) {
  ASSIGN_OR_RETURN(const auto results, LabelledResults::Load(store, compared.grid.record.id));
  const std::vector<std::string> labels =
      options.key.empty() ? results.DefaultLabels(kind) : std::vector<std::string>{options.key};
  if (labels.size() > figure::kMaxStacked) {
    return lookup::InvalidField(
        "key", absl::StrCat("missing, and ", labels.size(), " analyses can be drawn"),
        reflect::AnyOf(labels));
  }
  std::vector<figure::LabelledDrawing> drawings;
  for (const std::string& label : labels) {
    ASSIGN_OR_RETURN(auto analyzed, results.Read(compared, kind, label, options.step, cancelled));
    input.key = label;
    input.analyzed = std::move(analyzed);
    ASSIGN_OR_RETURN(auto drawing, figure::Draw(kind, input));
    drawings.push_back({label, std::move(drawing)});
  }
  return figure::Stack(std::move(drawings));
}

}  // namespace

absl::StatusOr<figure::Drawing> DrawFigure(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const lookup::Cancelled& cancelled) {
  // A kind without a key of its own has the compared one.
  figure::Input input = InputOf(compared, kind, kind.key.empty() ? "" : options.key);
  input.width = options.width;
  // Kinds without their own key use the compared metric.
  const std::optional<figure::Along> along = figure::AlongOf(kind);
  const bool of_one = along.has_value() || kind.reads == figure::Reads::kAnalysis;
  if (of_one && HasSeveralExperiments(compared)) {
    return lookup::InvalidField("comparison.others",
                                absl::StrCat("figure kind ", kind.name, " draws one experiment"),
                                "none, or other parts of that experiment");
  }
  if (DrawsCurves(kind)) {
    RETURN_IF_ERROR(ReadSettings(store, compared, kind, cancelled, &input));
  }
  if (along.has_value() && options.key.empty()) {
    ASSIGN_OR_RETURN(const auto results, LabelledResults::Load(store, compared.grid.record.id));
    ASSIGN_OR_RETURN(input.key,
                     DefaultFamily(store, compared.grid.record.id, results, *along, input.key));
  }
  if (along.has_value()) {
    ASSIGN_OR_RETURN(auto family,
                     ReadFamily(store, compared, *along, input.key, options.step, cancelled));
    const bool any = std::any_of(family.begin(), family.end(),
                                 [](const figure::FamilySetting& s) { return !s.seeds.empty(); });
    if (!any) {
      RETURN_IF_ERROR(CheckKnownFamily(store, compared.grid.record.id, *along, input.key,
                                       /*asked=*/!options.key.empty()));
    }
    input.family = std::move(family);
  }
  if (kind.reads == figure::Reads::kAnalysis) {
    return DrawLabels(store, compared, kind, options, cancelled, std::move(input));
  }
  auto drawing = figure::Draw(kind, input);
  if (absl::IsFailedPrecondition(drawing.status()) && DrawsCurves(kind) && !options.key.empty()) {
    RETURN_IF_ERROR(CheckKnownKey(store, "key", input.key, compared.grid.record.id));
  }
  return drawing;
}

absl::StatusOr<std::vector<html::Figure>> ReportFigures(storage::Store* store,
                                                        const ComparedGrid& compared,
                                                        const std::string& prefix,
                                                        const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const auto results, LabelledResults::Load(store, compared.grid.record.id));
  Families families;
  for (const figure::Along along : {figure::Along::kBlocks, figure::Along::kLevels}) {
    ASSIGN_OR_RETURN(auto reported,
                     ReportedFamilies(store, compared.grid.record.id, results, along));
    families[along] = std::move(reported);
  }
  std::vector<Plan> plans = PlansOf(compared, families, results);
  std::set<std::string> keys;
  for (const Plan& plan : plans) {
    if (DrawsCurves(*plan.kind)) keys.insert(plan.input.key);
  }
  for (const std::string& key : keys) {
    RETURN_IF_ERROR(ReduceCurves(store, compared, key, cancelled, &plans));
  }
  std::vector<html::Figure> figures;
  for (Plan& plan : plans) {
    if (cancelled()) return lookup::CallCancelled();
    RETURN_IF_ERROR(ReadAtLastStep(store, compared, results, cancelled, &plan));
    // A metric without a curve, such as an analysis's number, has no difference over training.
    const bool of_pairs = plan.kind->reads == figure::Reads::kPairs;
    if (of_pairs && plan.unread.ok() && !HasCurves(plan.input)) continue;
    figures.push_back(DrawPlan(plan, prefix));
    plan.input.analyzed = {};  // keeps one at a time in memory
  }
  return figures;
}

}  // namespace ablate::results
