#include "client/output/experiment_screen.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
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

// Such as "██████░░░░  48 %  ETA 1 min 20 s  2,315 steps/s".
std::string BarLine(const ExperimentView& view, int width) {
  // 100 % only if nothing is left, such as analyses.
  const bool runs_left = EndedRuns(view.counts) < AllRuns(view.counts);
  const bool left = runs_left || (!view.ended && !view.analyses.empty());
  const int percent = std::min(static_cast<int>(view.fraction * 100 + 1e-6), left ? 99 : 100);
  std::string text = absl::StrCat("  ", percent, " %");
  const bool moves = view.stalled.empty() && !view.lost.has_value() && !view.ended;
  if (moves && view.time_left < absl::InfiniteDuration() && view.time_left > absl::ZeroDuration()) {
    absl::StrAppend(&text, "  ETA ", Duration(view.time_left), "  ",
                    RateText(view.steps_per_second), " steps/s");
  }
  const int bar = std::min(kMaxBar, WidthOrAny(width) - DisplayWidth(text));
  return bar < kMinBar ? text.substr(2) : Bar(view.fraction, bar) + text;
}

// Such as "86 of 180 ended, 2 training, 92 queued, 1 failed". Runs that wait in a worker for one of
// its lanes count as queued.
std::string CountsLine(const ExperimentView& view) {
  const v1::RunCounts& counts = view.counts;
  std::string line = absl::StrCat(text::Grouped(EndedRuns(counts)), " of ",
                                  text::Grouped(AllRuns(counts)), " ended");
  const uint64_t open = uint64_t{counts.queued()} + counts.running();
  const uint64_t training = std::min<uint64_t>(view.lanes.size(), open);
  const std::pair<uint64_t, const char*> parts[] = {{training, "training"},
                                                    {open - training, "queued"},
                                                    {counts.diverged(), "diverged"},
                                                    {counts.failed(), "failed"},
                                                    {counts.cancelled(), "cancelled"}};
  for (const auto& [count, word] : parts) {
    if (count > 0) absl::StrAppend(&line, ", ", text::Grouped(count), " ", word);
  }
  if (!view.analyses.empty()) absl::StrAppend(&line, "; ", view.analyses);
  return line;
}

ScreenBlock ExperimentHeading(const ExperimentView& view, int width, absl::Time now) {
  ScreenBlock block;
  block.whole = true;
  block.rows.push_back(
      Truncate(Printable(absl::StrCat(view.id, view.question.empty() ? "" : "   ", view.question)),
               WidthOrAny(width)));
  block.rows.push_back(BarLine(view, width));
  AddWrapped(CountsLine(view), width, &block.rows);
  if (!view.stalled.empty()) AddWrapped("STALLED: " + view.stalled, width, &block.rows);
  if (view.lost.has_value()) {
    AddWrapped(absl::StrCat("connection lost ", Duration(now - *view.lost),
                            " ago; trying again. The experiment goes on when the server runs."),
               width, &block.rows);
  }
  AddWrapped(view.notice, width, &block.rows);
  return block;
}

// The best mean first; settings without one keep their order at the end.
std::vector<SettingRow> BestSettings(const ExperimentView& view) {
  std::vector<SettingRow> rows = view.settings;
  std::stable_sort(rows.begin(), rows.end(), [&](const SettingRow& a, const SettingRow& b) {
    if (!a.mean.has_value() || !b.mean.has_value())
      return a.mean.has_value() && !b.mean.has_value();
    return view.higher_is_better ? *a.mean > *b.mean : *a.mean < *b.mean;
  });
  return rows;
}

ScreenBlock LeaderBoard(const ExperimentView& view, int width) {
  if (view.settings.empty()) return {};
  const std::vector<SettingRow> rows = BestSettings(view);
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
  block.head.insert(
      block.head.begin(),
      Truncate(Printable(view.primary), WidthOrAny(width) - DisplayWidth(after)) + after);
  return block;
}

ScreenBlock ScreenFooter(const ExperimentView& view, int width) {
  ScreenBlock block;
  block.whole = true;
  if (view.ended) {
    AddWrapped(view.verdict, width, &block.rows);
  } else {
    AddWrapped(
        absl::StrCat("Ctrl-C leaves it running; `ablate watch ", view.id, "` shows it again"),
        width, &block.rows);
  }
  return block;
}

}  // namespace

std::vector<std::string> ExperimentScreen(const ExperimentView& view, int width, int height,
                                          absl::Time now) {
  return FitBlocks({ExperimentHeading(view, width, now), LaneBlock(view.lanes, width),
                    LeaderBoard(view, width), ScreenFooter(view, width)},
                   height);
}

}  // namespace ablate::client
