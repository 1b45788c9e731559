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
  out->Open("section", {{"id", absl::StrCat(place.prefix, name.text())}, {"class", name.text()}});
  out->Open("details").Open("summary");
  Heading(place.level, "part", title, out);
  out->Close();
}

void CloseFolded(Markup* out) { out->Close().Close(); }

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

using Formatter = std::string (*)(double value, int decimals);

// Of a mean that exists.
TableCell WithInterval(const Number& mean, const Interval& interval, Formatter format, int column) {
  const int decimals = report::DecimalsIn(column, mean, interval);
  const std::string text = format(mean.value, decimals);
  if (!interval.defined()) return {text, std::string(report::ReasonText(interval.undefined))};
  return {text, absl::StrCat("[", format(interval.low, decimals), ", ",
                             format(interval.high, decimals), "]")};
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

TableCell MeanCell(const Number& mean, const Interval& interval, int decimals) {
  if (!mean.defined()) return None(mean.undefined);
  return WithInterval(mean, interval, report::Plain, decimals);
}

TableCell DifferenceCell(const Number& mean, const Interval& interval, int decimals) {
  if (!mean.defined()) return NoPair(mean.undefined);
  return WithInterval(mean, interval, report::Signed, decimals);
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
