// Cells of tables: a text, what stands below it in small, and why there is neither.
#include "server/report/html/cells.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/report/text.h"

namespace ablate::html {
namespace {

using report::DecimalsFor;
using report::Interval;
using report::Number;
using report::Undefined;

TableCell None(Undefined reason) { return {"", Why(reason)}; }

using Formatter = std::string (*)(double value, int decimals);

TableCell WithInterval(const Number& mean, const Interval& interval, Formatter format) {
  if (!mean.defined()) return None(mean.undefined);
  const int decimals = DecimalsFor(mean.value, interval);
  const std::string text = format(mean.value, decimals);
  if (!interval.defined()) return {text, Why(interval.undefined)};
  return {text, absl::StrCat("[", format(interval.low, decimals), ", ",
                             format(interval.high, decimals), "]")};
}

}  // namespace

std::string Why(Undefined undefined) {
  switch (undefined) {
    case Undefined::kNo:
    case Undefined::kIsBaseline:
      return "";
    case Undefined::kTooFewRuns:
      return "too few runs";
    case Undefined::kTooFewPairs:
      return "too few pairs";
    case Undefined::kZeroVariance:
      return "no spread";
    case Undefined::kNonFinite:
      return "not finite";
    case Undefined::kAllDiverged:
      return "all diverged";
    case Undefined::kNoBaseline:
      return "no baseline";
    case Undefined::kBeyondLimit:
      return "beyond the limit";
    case Undefined::kNotRecorded:
      return "not recorded";
  }
  return "";
}

TableCell NumberCell(const Number& number) {
  if (!number.defined()) return None(number.undefined);
  return {report::Plain(number.value, DecimalsFor(number.value)), ""};
}

TableCell NumberCell(const Number& number, int decimals) {
  if (!number.defined()) return None(number.undefined);
  return {report::Plain(number.value, decimals), ""};
}

TableCell MeanCell(const Number& mean, const Interval& interval) {
  return WithInterval(mean, interval, report::Plain);
}

TableCell DifferenceCell(const Number& mean, const Interval& interval) {
  return WithInterval(mean, interval, report::Signed);
}

TableCell PCell(const Number& p) {
  if (!p.defined()) return None(p.undefined);
  const std::string text = report::PText(p.value);
  return {std::string(absl::StripPrefix(absl::StripPrefix(text, "p "), "= ")), ""};
}

void WriteCell(const TableCell& cell, Markup* out) {
  out->Open("td").Text(cell.text.empty() ? "—" : cell.text);
  if (!cell.below.empty()) out->Element("small", cell.below);
  out->Close();
}

void Caption(absl::string_view text, Markup* out) {
  out->Open("caption").Element("span", text).Close();
}

void HeadRow(const std::vector<std::string>& titles, Markup* out) {
  out->Open("tr");
  for (const std::string& title : titles) out->Element("th", {{"scope", "col"}}, title);
  out->Close();
}

}  // namespace ablate::html
