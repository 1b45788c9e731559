#include "server/report/table/headline_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/wording.h"
#include "server/report/table/cells.h"

namespace ablate::report {
namespace {

using Entry = HeadlineNumbers::Entry;
using Line = HeadlineNumbers::Line;

bool IsSignificant(const Entry& entry) { return entry.p.defined() && entry.p.value <= kAlpha; }

bool LacksInterval(const Interval& interval) {
  return interval.undefined == Undefined::kTooFewRuns ||
         interval.undefined == Undefined::kTooFewPairs;
}

// Returns the cell of a setting's number. The legend says why an interval is missing if runs are
// too few.
TableCell EntryCell(const Line& line, const Entry& entry) {
  TableCell cell = MeanCell(entry.own.mean, entry.own.interval, -1, entry.scale);
  if (line.compared && entry.own.mean.defined()) {
    TableCell difference = DifferenceCell(entry.scale, entry.difference);
    if (entry.difference.mean.defined() && LacksInterval(entry.difference.interval)) {
      difference.note.clear();
    }
    cell.interval = Together({difference.text, difference.interval}, " ");
    if (IsSignificant(entry)) cell.interval.push_back('*');
    cell.note = std::move(difference.note);
  } else if (entry.own.mean.defined() && LacksInterval(entry.own.interval)) {
    cell.note.clear();
  }
  if (entry.left_out > 0) AddNote(&cell, OfRuns(entry.runs, entry.runs + entry.left_out));
  return cell;
}

bool HasSeveralSteps(const HeadlineNumbers& analysis) {
  std::set<uint32_t> steps;
  for (const Line& line : analysis.lines) steps.insert(line.step);
  return steps.size() > 1;
}

// Returns true if all runs of all lines have the number, and the same.
bool IsConstant(const HeadlineNumbers& analysis, size_t number) {
  const double first = analysis.lines[0].entries[number].own.mean.value;
  return std::all_of(analysis.lines.begin(), analysis.lines.end(), [&](const Line& line) {
    const Entry& entry = line.entries[number];
    const Summary& own = entry.own;
    const bool has_spread = own.deviation.undefined != Undefined::kZeroVariance && own.n > 1;
    return own.mean.defined() && !has_spread && entry.left_out == 0 &&
           std::abs(own.mean.value - first) <= kTie * std::abs(first);
  });
}

// Calls `visit(analysis, line, number, entry)` for each entry, in order.
template <class Analyses, class Visit>
void VisitEntries(Analyses& analyses, Visit visit) {
  for (auto& analysis : analyses) {
    for (auto& line : analysis.lines) {
      for (size_t i = 0; i < line.entries.size(); ++i) {
        visit(analysis, line, analysis.numbers[i], line.entries[i]);
      }
    }
  }
}

}  // namespace

void SetConstantsApart(HeadlineNumbers* analysis) {
  if (analysis->lines.size() < 2) return;
  for (size_t i = 0; i < analysis->numbers.size();) {
    if (!IsConstant(*analysis, i)) {
      ++i;
      continue;
    }
    const Entry& entry = analysis->lines[0].entries[i];
    analysis->constants.emplace_back(
        analysis->numbers[i], MeanCell(entry.own.mean, entry.own.interval, -1, entry.scale).text);
    const auto at = static_cast<std::ptrdiff_t>(i);
    analysis->numbers.erase(analysis->numbers.begin() + at);
    for (Line& line : analysis->lines) line.entries.erase(line.entries.begin() + at);
  }
}

std::string ConstantsText(const HeadlineNumbers& analysis) {
  if (analysis.constants.empty()) return "";
  std::vector<std::string> numbers;
  for (const auto& [name, value] : analysis.constants) {
    numbers.push_back(absl::StrCat(name, " ", value));
  }
  return absl::StrCat("The same in every run: ", absl::StrJoin(numbers, ", "), ".");
}

void TestTogether(absl::string_view primary, std::vector<HeadlineNumbers>* analyses) {
  std::vector<Entry*> tested;
  std::vector<Number> p;
  std::set<std::string> known;
  VisitEntries(*analyses, [&](const HeadlineNumbers& analysis, const Line& line,
                              const std::string& number, Entry& entry) {
    const PairedStatistics& difference = entry.difference;
    if (!difference.p_t.defined() || !entry.ended) return;
    if (absl::StrCat(analysis.label, "/", number) == primary) return;
    // Sums in another order differ in the last digits.
    const std::string twins = absl::StrFormat("%s %d %.9g %.6g", line.setting, line.step,
                                              difference.mean.value, difference.deviation.value);
    if (!known.insert(twins).second) return;
    tested.push_back(&entry);
    p.push_back(difference.p_t);
  });
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < tested.size(); ++i) tested[i]->p = adjusted[i];
}

Table NumbersTable(const HeadlineNumbers& analysis) {
  Table table = {{{"setting"}, {"step", true}}};
  table.stacked = true;
  for (const std::string& number : analysis.numbers) table.columns.push_back({number, true});
  for (const Line& line : analysis.lines) {
    table.columns[0].cells.push_back({line.setting});
    table.columns[1].cells.push_back({text::Grouped(line.step)});
    table.baselines.push_back(line.is_baseline);
    for (size_t i = 0; i < line.entries.size(); ++i) {
      table.columns[2 + i].cells.push_back(EntryCell(line, line.entries[i]));
    }
  }
  return table;
}

std::string NumbersLegend(const std::vector<HeadlineNumbers>& analyses) {
  size_t all = 0, tested = 0;
  bool by_sequence = false, ratios = false, lacking = false, equal = false;
  VisitEntries(
      analyses, [&](const HeadlineNumbers&, const Line&, const std::string&, const Entry& entry) {
        const bool differs = entry.difference.mean.defined();
        ++all;
        tested += entry.p.defined();
        by_sequence = by_sequence || (differs && entry.unit != Unit::kSeed);
        ratios = ratios || (differs && entry.scale == Scale::kRatio);
        equal = equal || (differs && entry.difference.p_t.undefined == Undefined::kZeroVariance);
        lacking = lacking || (entry.own.mean.defined() && LacksInterval(entry.own.interval));
      });
  if (all == 0) return "";
  constexpr char kCells[] =
      "A cell has the mean over a setting's converged runs. After it comes, for a baseline, the 95 "
      "% interval; for other settings the paired difference from the baseline with its 95 % "
      "interval (Student's t).";
  constexpr char kBySequence[] =
      "With one run of each setting, loss and accuracy are paired by sequence: intervals and p are "
      "about these models, not about others of their kind.";
  return Together(
      {kCells, ratios ? "×: ratio; such means are geometric." : "", by_sequence ? kBySequence : "",
       lacking ? "Without brackets: too few runs for an interval." : "",
       equal ? "No spread: the difference is the same in every pair, so that it has no p." : "",
       tested > 0 ? absl::StrCat("*: p ≤ 0.05, adjusted for ", Counted(tested, "difference"),
                                 " of this experiment's analyses.")
                  : ""},
      " ");
}

Table OwnNumbersTable(const HeadlineNumbers& analysis) {
  Table table = {{{"number"}, {"value", true}}};
  for (const HeadlineNumbers::OwnNumber& number : analysis.own) {
    table.columns[0].cells.push_back({number.name});
    table.columns[1].cells.push_back(number.value.has_value()
                                         ? NumberCell(Defined(*number.value))
                                         : TableCell{"", "", number.undefined});
  }
  return table;
}

SignificantDifferences FindSignificant(const std::vector<HeadlineNumbers>& analyses) {
  struct Named {
    std::string number, setting;
    const Entry* entry = nullptr;
  };
  SignificantDifferences result;
  std::vector<Named> all;
  VisitEntries(analyses, [&](const HeadlineNumbers& analysis, const Line& line,
                             const std::string& number, const Entry& entry) {
    result.tested += entry.p.defined();
    if (!IsSignificant(entry)) return;
    all.push_back(
        {absl::StrCat(
             analysis.label, "/", number,
             HasSeveralSteps(analysis) ? absl::StrCat(" at ", text::Grouped(line.step)) : ""),
         line.setting, &entry});
  });
  result.significant = all.size();
  std::stable_sort(all.begin(), all.end(), [](const Named& a, const Named& b) {
    const PairedStatistics &own = a.entry->difference, &other = b.entry->difference;
    if (own.p_t.value != other.p_t.value) return own.p_t.value < other.p_t.value;
    return std::abs(own.effect.value) > std::abs(other.effect.value);
  });
  if (all.size() > kMaxSignificant) all.resize(kMaxSignificant);
  result.table = {{{"number"},
                   {"setting"},
                   {"baseline", true},
                   {"difference", true},
                   {"pairs", true},
                   {"p (t, Holm)", true}}};
  std::vector<Column>& columns = result.table.columns;
  for (const Named& one : all) {
    const Entry& entry = *one.entry;
    columns[0].cells.push_back({one.number});
    columns[1].cells.push_back({one.setting});
    columns[2].cells.push_back(entry.baseline);
    columns[3].cells.push_back(DifferenceCell(entry.scale, entry.difference));
    columns[4].cells.push_back({Counted(entry.difference.n, UnitName(entry.unit))});
    columns[5].cells.push_back(PCell(entry.p, true));
  }
  return result;
}

}  // namespace ablate::report
