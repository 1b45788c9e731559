#include "server/report/table/analysis_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/wording.h"
#include "server/report/table/cells.h"

namespace ablate::report {
namespace {

using Entry = AnalysisNumbers::Entry;
using Line = AnalysisNumbers::Line;

bool LacksInterval(const Interval& interval) {
  return interval.undefined == Undefined::kTooFewRuns ||
         interval.undefined == Undefined::kTooFewPairs;
}

// Returns the cell of a setting's number. Cells without an interval, because there are too few
// runs, don't say so each.
TableCell EntryCell(const Line& line, const Entry& entry) {
  TableCell cell = MeanCell(entry.own.mean, entry.own.interval, -1, entry.scale);
  if (entry.own.mean.defined() && (line.compared || LacksInterval(entry.own.interval))) {
    if (line.compared) cell.interval.clear();
    cell.note.clear();
  }
  if (entry.difference.mean.defined()) {
    TableCell difference = DifferenceCell(entry.scale, entry.difference);
    if (LacksInterval(entry.difference.interval)) difference.note.clear();
    cell.interval = Together({difference.text, difference.interval}, " ");
    cell.note = std::move(difference.note);
  }
  if (entry.left_out > 0) AddNote(&cell, OfRuns(entry.runs, entry.runs + entry.left_out));
  return cell;
}

bool HasSeveralSteps(const AnalysisNumbers& analysis) {
  std::set<uint32_t> steps;
  for (const Line& line : analysis.lines) steps.insert(line.step);
  return steps.size() > 1;
}

}  // namespace

Table NumbersTable(const AnalysisNumbers& analysis) {
  Table table = {{{"setting"}, {"step", true}}};
  for (const std::string& number : analysis.numbers) table.columns.push_back({number, true});
  bool any = false, all = true;  // cells with an interval
  for (const Line& line : analysis.lines) {
    table.columns[0].cells.push_back({line.setting});
    table.columns[1].cells.push_back({text::Grouped(line.step)});
    table.baselines.push_back(!line.compared);
    for (size_t i = 0; i < line.entries.size(); ++i) {
      const Entry& entry = line.entries[i];
      table.columns[2 + i].cells.push_back(EntryCell(line, entry));
      if (!entry.own.mean.defined()) continue;
      const bool has =
          line.compared ? entry.difference.interval.defined() : !LacksInterval(entry.own.interval);
      any = any || has;
      all = all && (has || !LacksInterval(entry.own.interval));
    }
  }
  const bool compared = std::any_of(analysis.lines.begin(), analysis.lines.end(),
                                    [](const Line& line) { return line.compared; });
  const std::string after =
      compared ? "after a mean: of a baseline its 95 % interval, of other settings the paired "
                 "difference from the baseline (×: ratio) with its 95 % interval"
               : "after a mean: its 95 % interval";
  table.note = Together({after, all   ? ""
                                : any ? "without brackets: too few runs for an interval"
                                      : "no intervals: too few runs"},
                        "; ");
  return table;
}

Table OwnNumbersTable(const AnalysisNumbers& analysis) {
  Table table = {{{"number"}, {"value", true}}};
  for (const AnalysisNumbers::OwnNumber& number : analysis.own) {
    table.columns[0].cells.push_back({number.name});
    table.columns[1].cells.push_back(number.value.has_value()
                                         ? NumberCell(Defined(*number.value))
                                         : TableCell{"", "", number.undefined});
  }
  return table;
}

namespace {

// A difference that can be tested.
struct TestedDifference {
  std::string number, setting;
  const Entry* entry = nullptr;
  Number p;  // adjusted
};

std::vector<TestedDifference> AllDifferences(const std::vector<AnalysisNumbers>& analyses) {
  std::vector<TestedDifference> all;
  std::vector<Number> p;
  for (const AnalysisNumbers& analysis : analyses) {
    const bool steps = HasSeveralSteps(analysis);
    for (const Line& line : analysis.lines) {
      for (size_t i = 0; i < line.entries.size(); ++i) {
        const Entry& entry = line.entries[i];
        if (!entry.difference.p_t.defined()) continue;
        all.push_back({absl::StrCat(analysis.label, "/", analysis.numbers[i],
                                    steps ? absl::StrCat(" at ", text::Grouped(line.step)) : ""),
                       line.setting,
                       &entry,
                       {}});
        p.push_back(entry.difference.p_t);
      }
    }
  }
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < all.size(); ++i) all[i].p = adjusted[i];
  return all;
}

}  // namespace

SureDifferences FindSureDifferences(const std::vector<AnalysisNumbers>& analyses) {
  std::vector<TestedDifference> all = AllDifferences(analyses);
  SureDifferences result;
  result.tested = all.size();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const TestedDifference& one) { return !(one.p.value <= kAlpha); }),
            all.end());
  result.sure = all.size();
  std::stable_sort(all.begin(), all.end(),
                   [](const TestedDifference& a, const TestedDifference& b) {
                     const double own = a.entry->difference.p_t.value;
                     const double other = b.entry->difference.p_t.value;
                     if (own != other) return own < other;
                     return std::abs(a.entry->difference.effect.value) >
                            std::abs(b.entry->difference.effect.value);
                   });
  if (all.size() > kMaxSure) all.resize(kMaxSure);
  result.table = {{{"number"},
                   {"setting"},
                   {"baseline", true},
                   {"difference", true},
                   {"pairs", true},
                   {"p (t, Holm)", true}}};
  std::vector<Column>& columns = result.table.columns;
  for (const TestedDifference& one : all) {
    const Entry& entry = *one.entry;
    columns[0].cells.push_back({one.number});
    columns[1].cells.push_back({one.setting});
    columns[2].cells.push_back(entry.baseline);
    columns[3].cells.push_back(DifferenceCell(entry.scale, entry.difference));
    columns[4].cells.push_back({Counted(entry.difference.n, UnitName(entry.unit))});
    columns[5].cells.push_back(PCell(one.p, true));
  }
  return result;
}

}  // namespace ablate::report
