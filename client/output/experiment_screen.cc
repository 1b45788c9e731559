#include "client/output/experiment_screen.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/screen_parts.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"
#include "client/output/wrap.h"

namespace ablate::client {
namespace {

constexpr int kMaxBar = 40;
constexpr int kMinBar = 8;
constexpr int kMinWidthOfChoice = 50;
constexpr int kAnyWidth = 100'000;

int WidthOrAny(int width) { return width > 0 ? width : kAnyWidth; }

void AddWrapped(const std::string& text, int width, std::vector<std::string>* lines) {
  if (text.empty()) return;
  for (const absl::string_view line :
       absl::StrSplit(Wrap(Printable(text), WidthOrAny(width)), '\n', absl::SkipEmpty())) {
    lines->emplace_back(line);
  }
}

std::string AnalysesOf(const ExperimentView& view) {
  return view.event.has_analyses() ? AnalysesText(view.event.analyses(), view.ended) : "";
}

// Such as "██████░░░░  48 %  ETA 1 min 20 s  2,315 steps/s".
std::string BarLine(const ExperimentView& view, int width) {
  const v1::ExperimentEvent& event = view.event;
  const v1::Snapshot& snapshot = event.snapshot();
  // 100 % only if nothing is left, such as analyses.
  const bool runs_left = EndedRuns(event.counts()) < AllRuns(event.counts());
  const bool left = runs_left || (!view.ended && event.has_analyses());
  const int percent = std::min(static_cast<int>(snapshot.fraction() * 100 + 1e-6), left ? 99 : 100);
  std::string text = absl::StrCat("  ", percent, " %");
  const bool moves = event.stalled().empty() && !view.lost.has_value() && !view.ended;
  const absl::Duration time_left = ToDuration(snapshot.time_left());  // 0: unknown
  if (moves && time_left > absl::ZeroDuration()) {
    absl::StrAppend(&text, "  ETA ", Duration(time_left), "  ",
                    RateText(snapshot.steps_per_second()), " steps/s");
  }
  const int bar = std::min(kMaxBar, WidthOrAny(width) - DisplayWidth(text));
  return bar < kMinBar ? text.substr(2) : Bar(snapshot.fraction(), bar) + text;
}

// Such as "86 of 180 ended, 2 training, 92 queued, 1 failed".
std::string CountsLine(const ExperimentView& view) {
  const v1::RunCounts& counts = view.event.counts();
  std::string line = absl::StrCat(text::Grouped(EndedRuns(counts)), " of ",
                                  text::Grouped(AllRuns(counts)), " ended");
  const std::pair<uint64_t, const char*> parts[] = {{counts.running(), "training"},
                                                    {counts.queued(), "queued"},
                                                    {counts.diverged(), "diverged"},
                                                    {counts.failed(), "failed"},
                                                    {counts.cancelled(), "cancelled"}};
  for (const auto& [count, word] : parts) {
    if (count > 0) absl::StrAppend(&line, ", ", text::Grouped(count), " ", word);
  }
  const std::string analyses = AnalysesOf(view);
  if (!analyses.empty()) absl::StrAppend(&line, "; ", analyses);
  return line;
}

ScreenBlock ExperimentHeading(const ExperimentView& view, int width, absl::Time now) {
  const std::string& question = view.experiment.spec().question();
  const std::string stalled = view.ended ? "" : view.event.stalled();
  ScreenBlock block;
  block.whole = true;
  block.rows.push_back(Truncate(
      Printable(absl::StrCat(Id(view.experiment.name()), question.empty() ? "" : "   ", question)),
      WidthOrAny(width)));
  block.rows.push_back(BarLine(view, width));
  AddWrapped(CountsLine(view), width, &block.rows);
  if (!stalled.empty()) AddWrapped("STALLED: " + stalled, width, &block.rows);
  if (view.lost.has_value()) {
    AddWrapped(absl::StrCat("connection lost ", Duration(now - *view.lost),
                            " ago; trying again. The experiment goes on when the server runs."),
               width, &block.rows);
  }
  AddWrapped(view.notice, width, &block.rows);
  return block;
}

// A row of the leader board.
struct SettingRow {
  std::string setting;
  std::optional<double> mean;  // of the primary metric, over n seeds
  uint64_t n = 0;
  uint64_t seeds = 0;  // that it will have; 0: not shown
  uint64_t diverged = 0;
  std::string chosen;  // values of tuned axes
};

// The best mean first.
std::vector<SettingRow> RowsOf(const v1::ExperimentSpec& spec, const v1::Snapshot& snapshot) {
  std::vector<SettingRow> rows;
  for (const v1::SettingMean& row : snapshot.settings()) {
    const std::map<std::string, std::string> labels(row.labels().begin(), row.labels().end());
    rows.push_back({SettingText(spec, labels, /*tuned=*/false),
                    row.has_mean() ? std::optional(row.mean()) : std::nullopt, row.n(), row.cells(),
                    row.diverged(), SettingText(spec, labels, /*tuned=*/true)});
  }
  return rows;
}

// Such as "lr 0.003", or "lr 0.003 ×10, lr 0.01 ×2" if seeds chose different values.
std::string ChosenText(const v1::ComparisonRow& row) {
  std::vector<v1::ChosenValues> values(row.chosen().begin(), row.chosen().end());
  std::stable_sort(
      values.begin(), values.end(),
      [](const v1::ChosenValues& a, const v1::ChosenValues& b) { return a.seeds() > b.seeds(); });
  std::vector<std::string> parts;
  for (const v1::ChosenValues& value : values) {
    const std::map<std::string, std::string> labels(value.labels().begin(), value.labels().end());
    parts.push_back(absl::StrJoin(labels, " ", absl::PairFormatter(" ")));
    if (values.size() > 1) absl::StrAppend(&parts.back(), " ×", value.seeds());
  }
  return absl::StrJoin(parts, ", ");
}

// The best mean first; settings without one keep their order at the end.
std::vector<SettingRow> RowsOf(const v1::Comparison& comparison) {
  std::vector<SettingRow> rows;
  for (const v1::ComparisonRow& row : comparison.rows()) {
    rows.push_back({row.label(), row.has_mean() ? std::optional(row.mean()) : std::nullopt, row.n(),
                    0, row.diverged(), ChosenText(row)});
  }
  const bool higher = comparison.better() == v1::Better::higher;
  std::stable_sort(rows.begin(), rows.end(), [&](const SettingRow& a, const SettingRow& b) {
    if (!a.mean.has_value() || !b.mean.has_value())
      return a.mean.has_value() && !b.mean.has_value();
    return higher ? *a.mean > *b.mean : *a.mean < *b.mean;
  });
  return rows;
}

ScreenBlock LeaderBoard(const ExperimentView& view, int width) {
  const bool compared = view.comparison.rows_size() > 0;
  const std::vector<SettingRow> rows =
      compared ? RowsOf(view.comparison) : RowsOf(view.experiment.spec(), view.event.snapshot());
  if (rows.empty()) return {};
  const std::string primary =
      compared ? view.comparison.key() : PrimaryMetric(view.experiment.spec());
  const auto any = [&](const auto& test) { return std::any_of(rows.begin(), rows.end(), test); };
  const bool diverged = any([](const SettingRow& row) { return row.diverged > 0; });
  const bool chosen = WidthOrAny(width) >= kMinWidthOfChoice &&
                      any([](const SettingRow& row) { return !row.chosen.empty(); });
  std::vector<Column> columns = {{"setting"}, {"mean", true}, {"n", true}};
  if (diverged) columns.push_back({"diverged", true});
  if (chosen) columns.push_back({view.ended ? "chosen" : "best so far"});
  Table table(columns);
  for (const SettingRow& row : rows) {
    const std::string n = text::Grouped(row.n);
    std::vector<std::string> cells = {
        row.setting, row.mean.has_value() ? ShortAligned(*row.mean) : "—",
        row.seeds > 0 ? absl::StrCat(n, "/", text::Grouped(row.seeds)) : n};
    if (diverged) cells.push_back(text::Grouped(row.diverged));
    if (chosen) cells.push_back(row.chosen);
    table.Add(std::move(cells));
  }
  ScreenBlock block = TableBlock(table.Render(width));
  // "preliminary" stays if the name of the metric is cut.
  const std::string after = view.ended ? "" : ", preliminary";
  block.head.insert(block.head.begin(),
                    Truncate(Printable(primary), WidthOrAny(width) - DisplayWidth(after)) + after);
  return block;
}

ScreenBlock ScreenFooter(const ExperimentView& view, int width) {
  ScreenBlock block;
  block.whole = true;
  if (view.ended) {
    AddWrapped(view.comparison.verdict().text(), width, &block.rows);
  } else {
    AddWrapped(absl::StrCat("Ctrl-C leaves it running; `ablate watch ", Id(view.experiment.name()),
                            "` shows it again"),
               width, &block.rows);
  }
  return block;
}

}  // namespace

std::vector<std::string> ExperimentScreen(const ExperimentView& view, int width, int height,
                                          absl::Time now) {
  return FitBlocks(
      {ExperimentHeading(view, width, now), LaneBlock(view.event.snapshot().lanes(), width),
       LeaderBoard(view, width), ScreenFooter(view, width)},
      height);
}

}  // namespace ablate::client
