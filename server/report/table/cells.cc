#include "server/report/table/cells.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/wording.h"

namespace ablate::report {

namespace {

TableCell Without(absl::string_view reason) { return {"", "", std::string(reason)}; }

// Makes a cell of "2.44 [2.42, 2.46]".
TableCell InParts(NumberWords words, const Interval& interval) {
  if (!interval.defined()) {
    const absl::string_view reason = ReasonText(interval.undefined);
    const bool constant = interval.undefined == Undefined::kZeroVariance;
    return {std::move(words.value), "", absl::StrCat(constant ? "" : "no interval: ", reason)};
  }
  return {std::move(words.value), std::move(words.interval)};
}

}  // namespace

void AddNote(TableCell* cell, std::string note) {
  cell->note = Together({cell->note, std::move(note)}, "; ");
}

TableCell MeanCell(const Number& mean, const Interval& interval, int decimals, Scale scale) {
  if (!mean.defined()) return Without(ReasonText(mean.undefined));
  return InParts(ShownMean(scale, mean.value, interval, DecimalsIn(decimals, mean, interval)),
                 interval);
}

TableCell SampleCell(const Summary& over, size_t left_out, int decimals) {
  TableCell cell = MeanCell(over.mean, over.interval, decimals);
  if (left_out > 0) AddNote(&cell, OfRuns(over.n, over.n + left_out));
  return cell;
}

TableCell DifferenceCell(Scale scale, const PairedStatistics& difference, int decimals) {
  if (!difference.mean.defined()) return Without(PairReasonText(difference.mean.undefined));
  return InParts(ShownDifference(scale, difference.mean, difference.interval, decimals),
                 difference.interval);
}

TableCell PCell(const Number& p, bool exact) {
  if (!p.defined()) return Without(PairReasonText(p.undefined));
  const std::string text = PText(p.value);
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "p < ")) return {absl::StrCat("<", number)};
  absl::ConsumePrefix(&number, "p = ");
  return {absl::StrCat(exact ? "" : "\u2248", number)};
}

TableCell PairNumberCell(const Number& number, bool sign) {
  if (!number.defined()) return Without(PairReasonText(number.undefined));
  return {sign ? Signed(number.value, 2) : Plain(number.value, 2)};
}

TableCell NumberCell(const Number& number) {
  if (!number.defined()) return Without(ReasonText(number.undefined));
  return {Plain(number.value)};
}

std::string BaselineName(const Comparison& comparison) {
  const ComparisonRow* first = nullptr;
  std::vector<bool> shared;
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.is_baseline) continue;
    if (first == nullptr) {
      first = &row;
      shared.assign(row.labels.size(), true);
    }
    for (size_t i = 0; i < row.labels.size(); ++i) {
      shared[i] = shared[i] && row.labels[i] == first->labels[i];
    }
  }
  if (first == nullptr) return "baseline";
  std::vector<std::string> axes, labels;
  for (size_t i = 0; i < shared.size(); ++i) {
    if (!shared[i]) continue;
    axes.push_back(comparison.row_axes[i]);
    labels.push_back(first->labels[i]);
  }
  return labels.empty() ? "baseline" : SettingName(axes, labels);
}

}  // namespace ablate::report
