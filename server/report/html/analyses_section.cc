#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::TableCell;

report::Table NumbersTable(const AnalysisTable& analysis) {
  report::Table table = {{{"setting"}, {"step", true}}};
  for (const std::string& number : analysis.numbers) table.columns.push_back({number, true});
  for (const AnalysisTable::Line& line : analysis.lines) {
    table.columns[0].cells.push_back({line.setting});
    table.columns[1].cells.push_back({text::Grouped(line.step)});
    for (size_t i = 0; i < line.entries.size(); ++i) {
      const AnalysisTable::Entry& entry = line.entries[i];
      table.columns[2 + i].cells.push_back(report::SampleCell(entry.over, entry.left_out));
    }
  }
  return table;
}

report::Table OwnNumbers(const AnalysisTable& analysis) {
  report::Table table = {{{"number"}, {"value", true}}};
  for (const AnalysisTable::OwnNumber& number : analysis.own) {
    table.columns[0].cells.push_back({number.name});
    table.columns[1].cells.push_back(number.value.has_value()
                                         ? report::NumberCell(report::Defined(*number.value))
                                         : TableCell{"", "", number.undefined});
  }
  return table;
}

std::string StateText(const AnalysisTable& table, const std::string& experiment) {
  if (table.asked == 0) {
    return absl::StrCat(
        "No analysis was made: ",
        table.failure.empty() ? "no run that it applies to converged" : table.failure, ".");
  }
  std::string state =
      absl::StrCat(text::Grouped(table.done), " of ", text::Grouped(table.asked),
                   table.asked == 1 ? " analysis was made." : " analyses were made.");
  if (!table.failure.empty()) absl::StrAppend(&state, " First failure: ", table.failure);
  if (table.left_out > 0) {
    absl::StrAppend(&state, " Not shown: ", text::Grouped(table.left_out),
                    table.left_out == 1 ? " further number" : " further numbers",
                    "; ablate metrics ", experiment, " lists all, as ", table.label, "/….");
  }
  return state;
}

}  // namespace

void AnalysesSection(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.analyses.empty()) return;
  OpenSection(place, "analyses", "Analyses of the models", out);
  for (const AnalysisTable& table : experiment.analyses) {
    const bool named = table.label != table.kind;
    Subheading(place, named ? absl::StrCat(table.label, " (", table.kind, ")") : table.label, out);
    if (!table.how.empty()) out->Element("p", table.how);
    out->Element("p", StateText(table, experiment.id));
    const std::string label = absl::StrCat("Numbers of ", table.label);
    if (!table.own.empty()) WriteTable(OwnNumbers(table), label, "Computed without a run.", out);
    if (!table.lines.empty()) {
      WriteTable(
          NumbersTable(table), label,
          absl::StrCat("Mean and 95 % interval over the converged runs of each setting; "
                       "a cell says \"4 of 6 runs\" if the other runs lack the number. "
                       "Exploratory: ablate compare EXPERIMENT --key ",
                       table.label, "/", table.numbers[0], " prints the paired differences."),
          out);
    }
  }
  out->Close();
}

}  // namespace ablate::html
