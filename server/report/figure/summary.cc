// The kind `summary`: each setting's value as a dot with its interval and seeds, for the compared
// metric or for each of the spec's summaries.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/report/figure/csv.h"
#include "server/report/figure/dot_rows.h"
#include "server/report/figure/dot_text.h"
#include "server/report/figure/draw.h"
#include "server/report/figure/metric_name.h"
#include "server/report/statistics.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::ComparisonRow;

// "mean of the first 50 points of training loss (nats)".
std::string WindowText(const SummaryWindow& summary) {
  static constexpr const char* kReductions[] = {"Mean", "Smallest", "Largest"};
  const report::Window& window = summary.window;
  std::string points = " over all points";
  if (window.side == report::WindowSide::kFirst) {
    points = absl::StrCat(" over the first ", window.points, " points");
  } else if (window.side == report::WindowSide::kLast) {
    points = absl::StrCat(" over the last ", window.points, " points");
  }
  return absl::StrCat(kReductions[static_cast<size_t>(window.reduction)], points);
}

DotRow RowOf(const std::string& label, size_t style, std::vector<double> values,
             const report::Summary& own, size_t diverged) {
  DotRow row;
  row.label = label;
  row.style = StyleOf(style);
  row.mean = own.mean;
  row.interval = own.interval;
  row.value = ValueText(own.mean, own.interval, false);
  row.short_value = ShortValueText(own.mean, own.interval, false);
  const size_t all = values.size() + diverged;
  const std::string n =
      diverged == 0 ? absl::StrCat(all) : absl::StrCat(values.size(), " of ", all);
  row.columns = {n};
  row.short_remark = absl::StrCat("n = ", n);
  row.seeds = std::move(values);
  return row;
}

// The compared metric at each row's own choice, unless there are summaries.
std::vector<SummaryWindow> WindowsOf(const Input& input) {
  if (!input.summaries.empty()) return input.summaries;
  SummaryWindow window;
  window.key = input.comparison->key;
  for (size_t i = 0; i < input.comparison->rows.size(); ++i) {
    SummaryRow row;
    row.row = i;
    for (const report::SeedRun& run : input.comparison->rows[i].runs) {
      if (run.diverged) {
        ++row.diverged;
      } else {
        row.values.push_back(run.value);
      }
    }
    window.rows.push_back(std::move(row));
  }
  return {window};
}

void AddGroup(const Input& input, const SummaryWindow& window, DotFigure* dots, std::string* csv) {
  const std::vector<size_t> styles = StyleIndices(*input.comparison);
  const MetricName name = NameOf(window.key);
  DotGroup group;
  group.axis_title = AxisTitle(name);
  if (!input.summaries.empty()) group.title = WindowText(window);
  const std::string title =
      CsvText(absl::StrCat(group.title, group.title.empty() ? "" : ", ", window.key));
  for (const SummaryRow& row : window.rows) {
    const std::string& label = input.comparison->rows[row.row].label;
    report::Summary own = report::Summarize(row.values);
    if (row.values.empty() && row.diverged > 0) {
      own.mean = report::NoNumber(report::Undefined::kAllDiverged);
    }
    AddCsvRow(
        {title, CsvText(label), CsvNumber(own.mean.value), CsvNumber(own.interval.low),
         CsvNumber(own.interval.high), absl::StrCat(row.values.size()), absl::StrCat(row.diverged)},
        csv);
    group.rows.push_back(RowOf(label, styles[row.row], row.values, own, row.diverged));
  }
  dots->groups.push_back(std::move(group));
}

}  // namespace

absl::StatusOr<Drawing> DrawSummary(const Input& input) {
  DotFigure dots;
  Drawing drawing;
  drawing.csv = "value,setting,mean,low,high,n,diverged\n";
  for (const SummaryWindow& window : WindowsOf(input)) {
    AddGroup(input, window, &dots, &drawing.csv);
  }
  const bool empty = std::all_of(dots.groups.begin(), dots.groups.end(),
                                 [](const DotGroup& group) { return group.rows.empty(); });
  if (empty) return absl::FailedPreconditionError("kind: summary has no run to show yet");
  dots.value_title = "mean [95 % interval]";
  dots.column_titles = {"n"};
  dots.footnote = "small dots: seeds; bar: 95 % t interval of the mean of those that converged";
  absl::StatusOr<Figure> figure = DrawDotRows(dots, input.width);
  if (!figure.ok()) return figure.status();
  drawing.figure = *std::move(figure);
  drawing.figure.name = "summary";
  drawing.figure.title = absl::StrCat(input.title, ": ", dots.groups[0].axis_title, " by setting");
  return drawing;
}

}  // namespace ablate::figure
