#include "client/web/board.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/screen_parts.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

// The range that intervals of a board span.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double At(double value) const { return high > low ? (value - low) / (high - low) : .5; }
};

Range RangeOf(const v1::Comparison& comparison) {
  Range range;
  for (const v1::ComparisonRow& row : comparison.rows()) {
    if (!row.has_mean()) continue;
    range.low = std::min(range.low, row.has_mean_low() ? row.mean_low() : row.mean());
    range.high = std::max(range.high, row.has_mean_high() ? row.mean_high() : row.mean());
  }
  return range;
}

// Draws mean and interval on a scale that all rows share. The cells before it have the numbers.
html::Html Interval(const v1::ComparisonRow& row, const Range& range) {
  constexpr double kLeft = 4, kWidth = 152;
  const auto x = [&](double value) {
    return absl::StrFormat("%.1f", kLeft + kWidth * range.At(value));
  };
  html::Markup out;
  out.Open("svg", {{"class", "interval"}, {"viewBox", "0 0 160 16"}, {"aria-hidden", "true"}});
  if (row.has_mean_low() && row.has_mean_high()) {
    out.Open("line",
             {{"x1", x(row.mean_low())}, {"x2", x(row.mean_high())}, {"y1", "8"}, {"y2", "8"}})
        .Close();
  }
  if (row.has_mean()) {
    out.Open("circle", {{"cx", x(row.mean())}, {"cy", "8"}, {"r", "4"}}).Close();
  }
  out.Close();
  return out.TakeHtml();
}

// Such as "lr 0.003, 10 of 12 seeds".
std::string ChosenText(const v1::ComparisonRow& row) {
  const v1::ChosenValues* most = nullptr;
  uint32_t seeds = 0;
  for (const v1::ChosenValues& one : row.chosen()) {
    seeds += one.seeds();
    if (most == nullptr || one.seeds() > most->seeds()) most = &one;
  }
  if (most == nullptr) return "";
  const std::map<std::string, std::string> labels(most->labels().begin(), most->labels().end());
  const std::string text = absl::StrJoin(labels, " ", absl::PairFormatter(" "));
  return row.chosen_size() == 1
             ? text
             : absl::StrCat(text, " by ", most->seeds(), " of ", seeds, " seeds");
}

std::string DifferenceText(const v1::ComparisonRow& row) {
  if (row.is_baseline()) return "baseline";
  const v1::Difference& difference = row.difference();
  if (!difference.has_mean()) return "—";
  std::string text = absl::StrFormat("%+.4g", difference.mean());
  if (difference.has_low() && difference.has_high()) {
    absl::StrAppendFormat(&text, " (%+.3g to %+.3g)", difference.low(), difference.high());
  }
  return text;
}

}  // namespace

html::Html ProgressPart(const v1::Experiment& experiment, const v1::ExperimentEvent& event) {
  const v1::RunCounts& counts = event.counts();
  const uint64_t ended = client::EndedRuns(counts), all = client::AllRuns(counts);
  const bool over = experiment.state() != v1::ExperimentState::ACTIVE;
  html::Markup out;
  if (!over) {
    const double fraction = event.has_snapshot() ? event.snapshot().fraction()
                            : all > 0            ? double(ended) / all
                                                 : 0;
    const int percent = std::min(static_cast<int>(fraction * 100 + 1e-6), 99);
    out.Open("p")
        .Open("progress",
              {{"max", "100"}, {"value", absl::StrCat(percent)}, {"aria-label", "training done"}})
        .Close();
    std::string text = absl::StrCat(" ", percent, " %");
    const absl::Duration left = client::ToDuration(event.snapshot().time_left());
    if (left > absl::ZeroDuration()) {
      absl::StrAppend(&text, ", ", client::Duration(left), " left at ",
                      client::RateText(event.snapshot().steps_per_second()), " steps/s");
    }
    out.Text(text).Close();
  }
  std::vector<std::string> facts = {
      absl::StrCat(text::Grouped(ended), " of ", text::Grouped(all), " runs ended"),
      client::CountsText(counts)};
  if (event.has_analyses()) facts.push_back(client::AnalysesText(event.analyses(), over));
  out.Element("p", absl::StrJoin(facts, " · "));
  if (!event.stalled().empty() && !over) {
    out.Element("p", {{"class", "alarm"}, {"role", "alert"}},
                absl::StrCat("STALLED: ", event.stalled()));
  }
  return out.TakeHtml();
}

html::Html BoardPart(const v1::Comparison& comparison) {
  html::Markup out;
  const bool preliminary = comparison.ended() < comparison.planned();
  const auto& rows = comparison.rows();
  const bool chosen =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.chosen_size() > 0; });
  const Range range = RangeOf(comparison);
  out.Open("p", {{"class", preliminary ? "answer preliminary" : "answer"}});
  absl::string_view verdict = comparison.verdict().text();
  if (preliminary) {
    absl::ConsumePrefix(&verdict, "preliminary");
    out.Element("strong", "Preliminary");
  }
  out.Text(verdict).Close();
  std::string better;
  if (comparison.better() != v1::Better::unspecified) {
    better = absl::StrCat(", ", v1::Better::Value_Name(comparison.better()), " is better");
  }
  std::vector<std::vector<Cell>> cells;
  for (const v1::ComparisonRow& row : rows) {
    std::string n = absl::StrCat(row.n());
    if (row.unfinished() > 0) absl::StrAppend(&n, ", ", row.unfinished(), " to come");
    if (row.diverged() > 0) absl::StrAppend(&n, ", ", row.diverged(), " diverged");
    if (row.failed() > 0) absl::StrAppend(&n, ", ", row.failed(), " failed");
    cells.push_back(
        {{row.label()},
         {row.has_mean() ? client::ShortAligned(row.mean()) : "—"},
         {row.has_mean_low() ? absl::StrCat(client::ShortAligned(row.mean_low()), " to ",
                                            client::ShortAligned(row.mean_high()))
                             : "—"},
         {.more = Interval(row, range)},
         {n},
         {DifferenceText(row)}});
    if (chosen) cells.back().push_back({ChosenText(row)});
  }
  std::vector<Column> columns = {{"Setting"},    {"Mean", true}, {"95 % interval", true},
                                 {"On a scale"}, {"n", true},    {"Difference", true}};
  if (chosen) columns.push_back({"Chosen"});
  out.Add(Table(absl::StrCat(comparison.key(), better, "; in grid order",
                             preliminary ? ", of the runs that have ended" : ""),
                columns, cells, /*stacks=*/true));
  return out.TakeHtml();
}

html::Html LanesPart(const v1::ExperimentEvent& event) {
  if (event.snapshot().lanes().empty()) {
    return Paragraph("No lane trains a run of this experiment now.", "muted");
  }
  std::vector<std::vector<Cell>> rows;
  for (const v1::Lane& lane : event.snapshot().lanes()) {
    const v1::TrainingRun& run = lane.training();
    const double rate = run.steps_per_second();
    rows.push_back({{lane.cell(), PathOfRun(run.run())},
                    {client::StepText(lane.step(), lane.steps())},
                    {rate > 0 ? client::Short(rate) : ""},
                    {.more = Sparkline(run.losses(), "training loss")}});
  }
  return Table("Runs that lanes train",
               {{"Cell"}, {"Step", true}, {"Steps/s", true}, {"Training loss"}}, rows);
}

html::Html FailuresPart(const v1::ListRunsResponse& failed) {
  html::Markup out;
  if (failed.rows().empty()) return {};
  out.Element("h2", client::Count(failed.rows_size(), "run") + " failed");
  for (const v1::RunRow& row : failed.rows()) {
    out.Open("details", {{"open", ""}}).Open("summary");
    out.Text(absl::StrCat(row.cell(), ": ", client::FirstLine(row.failure()))).Close();
    if (row.failure() != client::FirstLine(row.failure())) {
      out.Open("pre").Lines(row.failure()).Close();
    }
    out.Open("p");
    Link(PathOfRun(row.run()), "The run, with its log", &out);
    out.Close().Close();
  }
  return out.TakeHtml();
}

}  // namespace ablate::web
