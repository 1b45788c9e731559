// The sections of an experiment's report, and what they share: headings, boxes that scroll, tables.
// Functions that append to a page's markup; they keep nothing.
#ifndef ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
#define ABLATE_SERVER_REPORT_HTML_SECTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/html/markup.h"
#include "server/report/html/page.h"
#include "server/report/table/cells.h"
#include "server/report/table/table.h"

namespace ablate::html {

// Where a section stands: its headings' level, and what its ids begin with.
struct Place {
  int level = 2;       // of the section's heading: 2 or 3
  std::string prefix;  // of ids, distinct in a page
};

// Opens a section called `name` in ids, with its heading.
void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out);
// The same with everything but the heading folded away; CloseFolded ends it.
void OpenFolded(const Place& place, Literal name, absl::string_view title, Markup* out);
void CloseFolded(Markup* out);
// A section's heading that only readers of the structure meet.
void Unseen(const Place& place, absl::string_view title, Markup* out);
// A heading one level below the section's.
void Subheading(const Place& place, absl::string_view text, Markup* out);
// Opens a box that scrolls by itself where its content is wider than the screen.
void OpenScroll(absl::string_view label, Markup* out);
// Another element that scrolls, of the class `kind`: what scrolls must be reachable by keyboard.
void OpenScroll(Literal tag, Literal kind, absl::string_view label, Markup* out);

// Writes a table in a box that scrolls; `label` names the box. The caption is sentences, and ends
// with the table's note. Rows begin with their first cell. Columns with groups have two lines of
// heads, can be sorted by the page's script, and become a list for each row on a phone.
void WriteTable(const report::Table& table, absl::string_view label, absl::string_view caption,
                Markup* out);

// Write the parts of a table that isn't a report::Table: its caption, which on a phone stays in
// view while the table scrolls, and a line of column heads.
void Caption(absl::string_view text, Markup* out);
void HeadRow(const std::vector<std::string>& titles, Markup* out);

// A figure with its caption and its numbers as CSV; `number` counts those of the page.
void OneFigure(const Figure& figure, const std::string& prefix, size_t number, Markup* out);

// Parts of the first screen: cards of settings; cards of main effects and interactions, nothing
// where axes are not crossed; and the list of checks and cautions.
void Cards(const Experiment& experiment, Markup* out);
void EffectCards(const Place& place, const report::Comparison& comparison, Markup* out);
void Checks(const Place& place, const Experiment& experiment, Markup* out);

// In the order of the page; each writes one <section>, or nothing where it has nothing to say.
// The answer, setting by setting, with the figure that decides it, what was checked and what to
// beware of, and the command that makes the page again.
void FirstScreen(const Place& place, const std::string& command, const Experiment& experiment,
                 Markup* out);
// The main table, and the tables beside it: settings at shared tuned values, windows of curves.
void ResultsSection(const Place& place, const Experiment& experiment, Markup* out);
// What else than its label tells a setting from its baseline, and the warnings.
void ChangesSection(const Place& place, const Experiment& experiment, Markup* out);
// Figures as inline SVG but the one on the first screen; behind them, folded, those that say it
// again.
void FiguresSection(const Place& place, const Experiment& experiment, Markup* out);
// Numbers of the analyses that the spec asks for.
void AnalysesSection(const Place& place, const Experiment& experiment, Markup* out);
// What the models of each setting write.
void SamplesSection(const Place& place, const Experiment& experiment, Markup* out);
// How the numbers were computed, as far as it concerns this experiment.
void MethodsSection(const Place& place, const Experiment& experiment, Markup* out);
// Where the numbers come from, and how to make them again.
void ProvenanceSection(const Place& place, const Experiment& experiment, Markup* out);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
