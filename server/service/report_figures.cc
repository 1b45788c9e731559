// The figures of a report.
#include "server/service/report_figures.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/style.h"
#include "server/service/render_figure.h"

namespace ablate::service {
namespace {

// A figure on its way.
struct Plan {
  const figure::Kind* kind = nullptr;
  figure::Input input;
  absl::Status curves;  // why they can't be drawn
};

std::vector<Plan> PlansOf(const ComparedGrid& compared) {
  std::vector<Plan> plans;
  const report::Comparison& comparison = compared.comparison;
  const bool many = comparison.rows.size() > figure::kMaxInOnePanel;
  for (const figure::Kind* kind : figure::KindsInReport(comparison)) {
    Plan plan;
    plan.kind = kind;
    plan.input = InputOf(compared, *kind);
    const bool multiples = many && kind->reduce != nullptr;
    // Small multiples need the width.
    if (kind->wide || multiples) plan.input.width = figure::kDoubleWidth;
    plans.push_back(std::move(plan));
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
      if (too_many) plan.curves = curves.status();
      if (!plan.curves.ok()) continue;
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

html::Figure DrawFigure(const Plan& plan, const FigureWish& wish, const Cancelled& cancelled) {
  html::Figure figure;
  figure.name = std::string(plan.kind->name);
  figure.title = std::string(plan.kind->title);
  figure.caption = plan.kind->caption(plan.input);
  figure.description = plan.kind->description(plan.input);
  figure.wide = plan.input.width > figure::kColumnWidth;
  auto drawing = plan.curves.ok() ? figure::Draw(*plan.kind, plan.input)
                                  : absl::StatusOr<figure::Drawing>(plan.curves);
  if (!drawing.ok()) {
    figure.missing = Missing(drawing.status());
    return figure;
  }
  figure.csv = std::move(drawing->csv);
  drawing->figure.name = absl::StrCat(wish.prefix, figure.name);
  figure::ProcessLimits limits;
  limits.cancelled = cancelled;
  auto svg = wish.gnuplot->Render(drawing->figure, figure::Format::kSvg, limits);
  if (svg.ok()) {
    figure.svg = *std::move(svg);
  } else {
    figure.missing = Missing(svg.status());
  }
  return figure;
}

// Each thread takes the next plan that none has taken.
std::vector<html::Figure> DrawAll(const std::vector<Plan>& plans, const FigureWish& wish,
                                  const Cancelled& cancelled) {
  std::vector<html::Figure> figures(plans.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < plans.size(); i = next++) {
      figures[i] = DrawFigure(plans[i], wish, cancelled);
    }
  };
  const size_t threads =
      std::min<size_t>(plans.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return figures;
}

}  // namespace

absl::StatusOr<std::vector<html::Figure>> ReportFigures(storage::Store* store,
                                                        const ComparedGrid& compared,
                                                        const FigureWish& wish,
                                                        const Cancelled& cancelled) {
  std::vector<Plan> plans = PlansOf(compared);
  std::set<std::string> keys;
  for (const Plan& plan : plans) {
    if (plan.kind->reduce != nullptr) keys.insert(plan.input.key);
  }
  for (const std::string& key : keys) {
    const absl::Status read = ReduceCurves(store, compared, key, cancelled, &plans);
    if (!read.ok()) return read;
  }
  std::vector<html::Figure> figures = DrawAll(plans, wish, cancelled);
  if (cancelled()) return absl::CancelledError("the call was cancelled");
  return figures;
}

}  // namespace ablate::service
