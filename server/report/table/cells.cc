#include "server/report/table/cells.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/wording.h"

namespace ablate::report {

std::string MeanCell(const ComparisonRow& row, Scale scale, int decimals, bool interval) {
  if (!row.mean.defined()) return std::string(ReasonText(row.mean.undefined));
  const std::string text =
      ShownMean(scale, row.mean.value, row.interval, DecimalsIn(decimals, row.mean, row.interval));
  return interval ? text : BeforeInterval(text).first;
}

std::string DifferenceCell(const ComparisonRow& row, Scale scale, int decimals) {
  if (row.is_baseline) return std::string(kNone);
  const PairedStatistics& difference = row.difference;
  if (!difference.mean.defined()) return std::string(PairReasonText(difference.mean.undefined));
  std::string text = ShownDifference(scale, difference.mean, difference.interval, decimals);
  if (!difference.interval.defined()) {
    absl::StrAppend(&text, " (no interval: ", ReasonText(difference.interval.undefined), ")");
  }
  if (row.pairs.converged < row.pairs.all) {
    absl::StrAppend(&text, " (", row.pairs.converged, " of ", row.pairs.all, ")");
  }
  return text;
}

std::string PCell(const ComparisonRow& row, const Number& p, bool exact) {
  if (row.is_baseline) return std::string(kNone);
  // What was not planned is described and not tested; a p of some of the runs is none.
  if (row.withheld == Withheld::kExploratory || row.withheld == Withheld::kUnfinished) return "";
  if (!p.defined()) return std::string(PairReasonText(p.undefined));
  const std::string number = PNumber(p.value);
  return exact || number[0] == '<' ? number : absl::StrCat("\u2248", number);
}

std::string PNumber(double p) {
  const std::string text = PText(p);
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "p < ")) return absl::StrCat("<", number);
  absl::ConsumePrefix(&number, "p = ");
  return std::string(number);
}

std::string WinsCell(const ComparisonRow& row) {
  if (!row.compared()) return std::string(kNone);
  std::string text = absl::StrCat(row.pairs.wins, "/", row.pairs.all);
  if (row.pairs.ties > 0) absl::StrAppend(&text, ", ", Counted(row.pairs.ties, "tie"));
  return text;
}

std::string DivergedCell(const ComparisonRow& row) {
  return row.diverged == 0 ? "0" : absl::StrCat(row.diverged, "/", row.n);
}

std::string ParametersCell(const ComparisonRow& row) {
  if (!row.parameters.has_value()) return "";
  const std::string low = text::Grouped(row.parameters->low);
  if (row.parameters->low == row.parameters->high) return low;
  return absl::StrCat(low, " to ", text::Grouped(row.parameters->high));
}

std::string PureNumberCell(const ComparisonRow& row, const Number& number, bool sign) {
  if (row.is_baseline) return std::string(kNone);
  if (!number.defined()) return std::string(PairReasonText(number.undefined));
  return sign ? Signed(number.value, 2) : Plain(number.value, 2);
}

std::string CostCell(const Number& number) {
  if (!number.defined()) return "";
  if (std::abs(number.value) >= 100) {
    return text::Grouped(static_cast<int64_t>(std::llround(number.value)));
  }
  return Plain(number.value, DecimalsFor(number.value));
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
