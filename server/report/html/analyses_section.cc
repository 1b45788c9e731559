#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

TableCell EntryCell(const AnalysisTable::Entry& entry) {
  TableCell cell = MeanCell(entry.mean, entry.interval);
  if (entry.left_out > 0 && entry.n > 0) {
    absl::StrAppend(&cell.below, cell.below.empty() ? "" : "; ", entry.n, " of ",
                    entry.n + entry.left_out);
  }
  return cell;
}

void NumbersTable(const AnalysisTable& table, Markup* out) {
  OpenScroll(absl::StrCat("Numbers of ", table.label), out);
  out->Open("table");
  Caption(absl::StrCat("Mean and 95 % interval over the converged runs of each setting; \"4 of 6\" "
                       "where the others have no such number. Exploratory: ablate compare "
                       "EXPERIMENT --key ",
                       table.label, "/", table.numbers[0], " has the paired differences."),
          out);
  std::vector<std::string> titles = {"setting", "step"};
  titles.insert(titles.end(), table.numbers.begin(), table.numbers.end());
  out->Open("thead");
  HeadRow(titles, out);
  out->Close().Open("tbody");
  for (const AnalysisTable::Line& line : table.lines) {
    out->Open("tr").Element("th", {{"scope", "row"}}, line.setting);
    out->Element("td", text::Grouped(line.step));
    for (const AnalysisTable::Entry& entry : line.entries) WriteCell(EntryCell(entry), out);
    out->Close();
  }
  out->Close().Close().Close();
}

void OwnNumbers(const AnalysisTable& table, Markup* out) {
  OpenScroll(absl::StrCat("Numbers of ", table.label), out);
  out->Open("table");
  Caption("It is of no run.", out);
  out->Open("thead");
  HeadRow({"number", "value"}, out);
  out->Close().Open("tbody");
  for (const AnalysisTable::OwnNumber& number : table.own) {
    out->Open("tr").Element("th", {{"scope", "row"}}, number.name);
    WriteCell(number.value.has_value() ? NumberCell({*number.value, report::Undefined::kNo})
                                       : TableCell{"", number.undefined},
              out);
    out->Close();
  }
  out->Close().Close().Close();
}

std::string StateText(const AnalysisTable& table, const std::string& experiment) {
  if (table.asked == 0) {
    return absl::StrCat("None was made",
                        table.failure.empty()
                            ? ": no run of a model that has a use for it converged"
                            : absl::StrCat(": ", table.failure),
                        ".");
  }
  std::string state =
      absl::StrCat(text::Grouped(table.done), " of ", text::Grouped(table.asked),
                   table.asked == 1 ? " analysis was made." : " analyses were made.");
  if (!table.failure.empty()) absl::StrAppend(&state, " The first that failed: ", table.failure);
  if (table.left_out > 0) {
    absl::StrAppend(&state, " It has ", text::Grouped(table.left_out),
                    table.left_out == 1 ? " further number" : " further numbers",
                    ": ablate metrics ", experiment, " shows all, as ", table.label, "/….");
  }
  return state;
}

}  // namespace

void AnalysesSection(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.analyses.empty()) return;
  OpenSection(place, "analyses", "Inside the models", out);
  for (const AnalysisTable& table : experiment.analyses) {
    const bool named = table.label != table.kind;
    Subheading(place, named ? absl::StrCat(table.label, " (", table.kind, ")") : table.label, out);
    if (!table.how.empty()) out->Element("p", table.how);
    out->Element("p", StateText(table, experiment.id));
    if (!table.own.empty()) OwnNumbers(table, out);
    if (!table.lines.empty()) NumbersTable(table, out);
  }
  out->Close();
}

}  // namespace ablate::html
