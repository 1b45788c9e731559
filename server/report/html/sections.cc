#include "server/report/html/sections.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/wording.h"

namespace ablate::html {
namespace {

// An element per level: elements' names are literals. Its look goes by `kind`, for levels differ
// between pages of one and of several experiments.
void Heading(int level, Literal kind, absl::string_view text, Markup* out) {
  constexpr Literal kHeadings[] = {"h1", "h2", "h3", "h4"};
  out->Element(kHeadings[std::clamp(level, 1, 4) - 1], {{"class", kind.text()}}, text);
}

}  // namespace

void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out) {
  out->Open("section", {{"id", absl::StrCat(place.prefix, name.text())}, {"class", name.text()}});
  Heading(place.level, "part", title, out);
}

void OpenFolded(const Place& place, Literal name, absl::string_view title, Markup* out) {
  out->Open("section", {{"class", name.text()}}).Open("details").Open("summary");
  Heading(place.level, "part", title, out);
  out->Close();
  // Behind the fold, so that a link to it opens it.
  out->Open("div", {{"id", absl::StrCat(place.prefix, name.text())}});
}

void CloseFolded(Markup* out) { out->Close().Close().Close(); }

void Unseen(const Place& place, absl::string_view title, Markup* out) {
  Heading(place.level, "unseen", title, out);
}

void Subheading(const Place& place, absl::string_view text, Markup* out) {
  Heading(place.level + 1, "subpart", text, out);
}

void OpenScroll(absl::string_view label, Markup* out) { OpenScroll("div", "scroll", label, out); }

void OpenScroll(Literal tag, Literal kind, absl::string_view label, Markup* out) {
  out->Open(tag, {{"class", kind.text()},
                  {"role", "region"},
                  {"tabindex", "0"},
                  {"aria-label", std::string(label)}});
}

namespace {

using report::DecimalsFor;
using report::Interval;
using report::Number;
using report::Undefined;

TableCell None(Undefined reason) { return {"", std::string(report::ReasonText(reason))}; }
TableCell NoPair(Undefined reason) { return {"", std::string(report::PairReasonText(reason))}; }

// "2.44 [2.42, 2.46]" as a cell; without an interval its reason stands below.
TableCell InTwo(const std::string& text, const Interval& interval) {
  if (!interval.defined()) return {text, std::string(report::ReasonText(interval.undefined))};
  const auto [mean, below] = report::BeforeInterval(text);
  return {mean, below};
}

}  // namespace

TableCell NumberCell(const Number& number) {
  if (!number.defined()) return None(number.undefined);
  return {report::Plain(number.value, DecimalsFor(number.value)), ""};
}

TableCell PairNumberCell(const Number& number) {
  if (!number.defined()) return NoPair(number.undefined);
  return {report::Plain(number.value, 2), ""};
}

TableCell MeanCell(const Number& mean, const Interval& interval, int decimals,
                   report::Scale scale) {
  if (!mean.defined()) return None(mean.undefined);
  return InTwo(
      report::ShownMean(scale, mean.value, interval, report::DecimalsIn(decimals, mean, interval)),
      interval);
}

TableCell DifferenceCell(report::Scale scale, const report::PairedStatistics& difference,
                         int decimals) {
  const Number& mean = difference.mean;
  const Interval& interval = difference.interval;
  if (!mean.defined()) return NoPair(mean.undefined);
  return InTwo(report::ShownDifference(scale, mean, interval, decimals), interval);
}

TableCell PCell(const Number& p) {
  if (!p.defined()) return NoPair(p.undefined);
  const std::string text = report::PText(p.value);
  return {std::string(absl::StripPrefix(absl::StripPrefix(text, "p "), "= ")), ""};
}

namespace {

void WriteContent(const TableCell& cell, Markup* out) {
  out->Text(cell.text.empty() ? "—" : cell.text);
  if (!cell.below.empty()) out->Element("small", cell.below);
  out->Close();
}

}  // namespace

void WriteCell(const TableCell& cell, Markup* out) {
  out->Open("td");
  WriteContent(cell, out);
}

void WriteCell(const TableCell& cell, absl::string_view title, bool leads, Markup* out) {
  out->Open("td", {{"data-title", std::string(title)}, {"class", leads ? "delta" : "value"}});
  WriteContent(cell, out);
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
